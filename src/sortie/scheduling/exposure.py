"""How much training every environment, hint and pattern has had: what the learner's progress is explained by.

A group of rewards r trains by its sum of squared advantages, sum (r - mean)^2: the size of a policy-gradient step with
a group-mean baseline. Whether and how fast success follows is for the model to find out. Ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sortie.scheduling.factors import Floats, Ints

ANYWHERE = 0.1
"""Share of all training that counts as that of everyone, so that the four kinds are of like size."""
HISTORY = 8
"""Policy versions for which what had been trained by then is remembered, for results that come late."""


class Exposure:
    """Training so far."""

    def __init__(self) -> None:
        self._now = [np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(1)]
        """Per environment, hint, pattern, and anywhere."""
        self._then: dict[int, list[Floats]] = {}

    def grow(self, environments: int, hints: int, patterns: int) -> None:
        """Make room; what is new has had no training of its own."""
        for kind, size in enumerate((environments, hints, patterns)):
            self._now[kind] = _padded(self._now[kind], size)

    def advance(self, version: int) -> None:
        """The policy `version` has had all training so far."""
        self._then[version] = [total.copy() for total in self._now]
        for old in sorted(self._then)[:-HISTORY]:
            del self._then[old]

    def at(self, version: int | None = None) -> list[Floats]:
        """Totals now, or as they were for a policy version."""
        if version is None or not self._then:
            return self._now
        known = [v for v in self._then if v <= version] or [min(self._then)]
        return [_padded(then, len(now)) for then, now in zip(self._then[max(known)], self._now, strict=True)]

    def train(self, environment: Ints, hint: Ints, pattern: Ints, amount: Floats) -> None:
        """Count the training on groups."""
        for total, index in zip(self._now, (environment, hint, pattern), strict=False):
            np.add.at(total, index, amount)
        self._now[3] += ANYWHERE * amount.sum()

    def state_dict(self) -> dict[str, Any]:
        """JSON values."""
        then = [[version, [total.tolist() for total in totals]] for version, totals in self._then.items()]
        return {"now": [total.tolist() for total in self._now], "then": then}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over saved totals."""
        self._now = [np.array(total, dtype=float) for total in state["now"]]
        self._then = {int(v): [np.array(total, dtype=float) for total in totals] for v, totals in state["then"]}


def _padded(values: Floats, size: int) -> Floats:
    return np.append(values, np.zeros(max(size - len(values), 0)))
