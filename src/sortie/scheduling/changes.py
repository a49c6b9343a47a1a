"""Sudden changes: an environment, a hint or a pattern whose results no longer look like what was learned of it.

Each group is judged under two hypotheses: nothing changed, or the factor's effect was drawn anew and what training had
brought there was lost. The logarithm of their likelihood ratio is summed per factor and never falls below 0: Page's
cumulative sum (1954), which is optimal for detecting one change (Lorden 1971). What is over the threshold is forgotten.
Ours in its use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sortie.scheduling.factors import Floats, Ints
from sortie.scheduling.gaussian import Posterior
from sortie.scheduling.signal import quadrature

MOST = 2.5
"""What one group can add: no single outlier looks like a change."""
KINDS = ("environment", "hint", "pattern")


class Changes:
    """Sums per environment, hint and pattern."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._sums = [np.zeros(0) for _ in KINDS]

    def grow(self, *sizes: int) -> None:
        """Make room."""
        self._sums = [np.append(s, np.zeros(max(n - len(s), 0))) for s, n in zip(self._sums, sizes, strict=True)]

    def judge(
        self,
        posterior: Posterior,
        places: Sequence[Ints],
        exposure: Floats,
        mean: Floats,
        var: Floats,
        successes: Floats,
        trials: Floats,
    ) -> list[Ints]:
        """Take in groups at places (environment, hint, pattern) with predicted logits; returns what changed."""
        expected = log_likelihood(mean, var, successes, trials)
        changed = []
        for kind, (at, effect, strength) in enumerate(
            zip(places, effects(posterior), _strengths(posterior), strict=True)
        ):
            learned = posterior.mean[posterior.factors.exposures][kind] * exposure[:, kind]
            anew = log_likelihood(mean - effect[at] - learned, var + strength**2, successes, trials)
            total = self._sums[kind]
            np.add.at(total, at, np.minimum(anew - expected, MOST))
            np.maximum(total, 0.0, out=total)
            changed.append(np.flatnonzero(total > self._threshold))
            total[changed[-1]] = 0.0
        return changed

    def state_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {name: total.tolist() for name, total in zip(KINDS, self._sums, strict=True)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over saved sums."""
        self._sums = [np.array(state[name], dtype=float) for name in KINDS]


def log_likelihood(mean: Floats, var: Floats, successes: Floats, trials: Floats) -> Floats:
    """log E[sigmoid(f)^k sigmoid(-f)^(n - k)] for f ~ N(mean, var), by quadrature."""
    nodes, weights = quadrature()
    f = mean + np.sqrt(var) * nodes[:, None]
    terms = successes * f - trials * np.logaddexp(0.0, f) + np.log(weights)[:, None]
    top = terms.max(axis=0)
    return np.asarray(top + np.log(np.exp(terms - top).sum(axis=0)))


def effects(posterior: Posterior) -> tuple[Floats, Floats, Floats]:
    """Posterior means of the effects of environments, hints and patterns."""
    f, own = posterior.factors, posterior.environments
    return (
        own.offset - own.pull @ posterior.mean,
        posterior.mean[f.first_hint : f.first_hint + f.hints],
        posterior.mean[f.first_pattern : f.first_pattern + f.patterns],
    )


def _strengths(posterior: Posterior) -> tuple[float, float, float]:
    s = posterior.strengths
    return s.environment, s.hint, s.pattern
