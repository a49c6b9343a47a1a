"""Tasks as points of a space, and how alike they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sortie.core.group import TaskRecord
from sortie.scheduling.keyed import key_hashes
from sortie.scheduling.pattern import WIDTH, as_vectors, text_vectors
from sortie.scheduling.rivals.tasks import Floats, Ints

SAMPLE = 256
"""Tasks whose distances set the length scale."""


class Embedding:
    """Given features, each column scaled by its spread among the first tasks, or hashed text of length 1."""

    def __init__(self) -> None:
        self._points = np.zeros((0, 2 * WIDTH))
        self._spread: Floats | None = None
        self._length = 1.0

    def extend(self, records: Sequence[TaskRecord]) -> None:
        """Embed these tasks, in this order, instead of those before; the first to come set the scales."""
        given = np.array([record.features is not None for record in records], dtype=bool)
        points = np.zeros((len(records), 2 * WIDTH))
        points[given, :WIDTH] = as_vectors([r.features for r in records if r.features is not None])
        points[~given, WIDTH:] = text_vectors([r.text for r in records if r.features is None]) if (~given).any() else 0
        if self._spread is None and len(records):
            hashes = key_hashes([record.key for record in records])
            order = np.argsort(hashes)  # sums in an order that does not depend on the records'
            spread = points[order[given[order]], :WIDTH].std(axis=0) if given.any() else np.ones(WIDTH)
            self._spread = np.append(np.where(spread > 1e-6, spread, 1.0), np.ones(WIDTH))
            sample = points[order[:SAMPLE]] / self._spread
            distances = np.sqrt(_squared(sample, sample)[np.triu_indices(len(sample), 1)])
            apart = distances[distances > 1e-6]
            self._length = float(np.median(apart)) if len(apart) else 1.0
        self._points = points / (1.0 if self._spread is None else self._spread)

    def kernel(self, rows: Ints, environment: Ints) -> Floats:
        """exp(-d^2 / (2 length^2)) of all tasks and `rows`, [N, rows]; other environments lie one length off."""
        squared = _squared(self._points, self._points[rows]) / self._length**2
        return np.asarray(np.exp(-0.5 * (squared + (environment[:, None] != environment[rows]))))

    def state_dict(self) -> dict[str, Any]:
        """JSON values: the scales."""
        return {"spread": None if self._spread is None else self._spread.tolist(), "length": self._length}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over saved scales; tasks are to be embedded again."""
        self._spread = None if state["spread"] is None else np.array(state["spread"])
        self._length = float(state["length"])


def _squared(a: Floats, b: Floats) -> Floats:
    """Squared distances of the rows of `a` and `b`."""
    return np.asarray(np.maximum((a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2.0 * a @ b.T, 0.0))
