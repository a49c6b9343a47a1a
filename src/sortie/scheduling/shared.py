"""What the posterior says of pairs: first what they share with others, then each with its own observations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sortie.scheduling.factors import Floats, Ints
from sortie.scheduling.gaussian import Posterior


@dataclass(frozen=True, slots=True)
class Shared:
    """Moments of rows' logits without exposure and own effects [N]."""

    mean: Floats
    var: Floats
    slope_cov: Floats
    """Covariance with the exposures' coefficients [N, 4]."""


class Reader:
    """Reads means and variances off a posterior.

    A row names its cell, hint and pattern. Pattern Q + h stands for pairs of hint h that were never rolled out: a
    mixture of the patterns that such pairs have shown, with weights `expected` [H, Q].
    """

    def __init__(self, posterior: Posterior, expected: Floats) -> None:
        factors, cells = posterior.factors, posterior.cells
        self._posterior, self._expected = posterior, expected
        first, H, D = factors.first_pattern, factors.hints, factors.dense
        patterns = slice(first, first + factors.patterns)
        self._columns = np.append(np.arange(first + factors.patterns), np.arange(D, D + H))
        """Of level, families, hints, patterns and expected patterns in the extended arrays."""
        mean, cov = posterior.mean, posterior.cov
        self._mean = np.append(mean, expected @ mean[patterns])
        cross = cov[:, patterns] @ expected.T
        self._cov = np.block([[cov, cross], [cross.T, expected @ cov[patterns, patterns] @ expected.T]])
        spread = expected @ mean[patterns] ** 2 - (expected @ mean[patterns]) ** 2
        self._spread = np.append(np.zeros(factors.patterns), np.maximum(spread, 0.0))
        parent = factors.cell_environment
        environments = posterior.environments
        pull = cells.pull + cells.keep[:, None] * environments.pull[parent]
        pull_cov = pull @ cov
        self._cell_mean = cells.offset + cells.keep * environments.offset[parent] - pull @ mean
        self._cell_var = cells.variance + cells.keep**2 * environments.variance[parent] + (pull_cov * pull).sum(axis=1)
        self._pull_cov = np.hstack([pull_cov, pull_cov[:, patterns] @ expected.T])

    def shared(self, cell: Ints, hint: Ints, pattern: Ints) -> Shared:
        """Moments of rows."""
        factors, slopes = self._posterior.factors, self._posterior.factors.exposures
        columns = factors.columns(cell, hint, np.zeros_like(pattern))
        columns[:, 3] = self._columns[factors.first_pattern + pattern]
        mean, var = self._cell_mean[cell].copy(), self._cell_var[cell] + self._spread[pattern]
        slope_cov = -self._pull_cov[cell, slopes]
        for a in range(4):
            mean += self._mean[columns[:, a]]
            var -= 2.0 * self._pull_cov[cell, columns[:, a]]
            slope_cov += self._cov[columns[:, a], slopes]
            for b in range(4):
                var += self._cov[columns[:, a], columns[:, b]]
        return Shared(mean, np.maximum(var, 1e-9), slope_cov)

    def logits(
        self, shared: Shared, exposure: Floats, precision: Floats, value: Floats, then: Floats
    ) -> tuple[Floats, Floats]:
        """Mean and variance of logits at `exposure` [N, 4], with each pair's own observations (precision 0: none).

        Given what is shared, s, and the coefficients k: logit = s + k exposure + g (value - s - k then), with gain
        g = s2 p / (1 + s2 p) and variance s2 (1 - g), s2 = pair^2.
        """
        s2, slopes = self._posterior.strengths.pair**2, self._posterior.factors.exposures
        rest = 1.0 / (1.0 + s2 * precision)  # 1 - gain
        moved = exposure - (1.0 - rest)[:, None] * then
        learning, cov = self._posterior.mean[slopes], self._posterior.cov[slopes, slopes]
        mean = rest * shared.mean + (1.0 - rest) * value + moved @ learning
        var = rest**2 * shared.var + 2.0 * rest * (shared.slope_cov * moved).sum(axis=1)
        return mean, np.maximum(var + ((moved @ cov) * moved).sum(axis=1), 1e-9) + s2 * rest

    def of_pattern(self, pattern: Ints, values: Floats) -> Floats:
        """What each row has of `values` [Q], one per pattern: its own, or what is expected for its hint."""
        return np.asarray(np.append(values, self._expected @ values)[pattern])
