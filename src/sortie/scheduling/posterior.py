"""The success of every pair as one Gaussian model of logits, exact given its observations.

    f_i = shared + environment[e_i] + hint[h_i] + pattern[q_i] + cell[c_i] + own_i

Each term has an independent normal prior of mean 0; a cell is one hint inside one environment. This is the crossed
random-effects model (Gelman & Hill 2007, ch. 13) for logits; its use over environments and patterns is ours. Groups
enter as Gaussian sites (see `site`). Own effects and cells are eliminated in closed form, so that only the few crossed
factors need a dense solve: O(F^2 C) for F crossed factors and C cells, whatever the number of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sortie.core.config import Config

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Prior(Config):
    """Standard deviations in logits."""

    shared: float = Field(1.5, gt=0)
    """Level common to all pairs."""
    environment: float = Field(1.0, gt=0)
    hint: float = Field(1.0, gt=0)
    """What is known of a task before its first rollout: given features, or text."""
    pattern: float = Field(0.5, gt=0)
    """How its rollouts behaved."""
    cell: float = Field(1.0, gt=0)
    """One hint inside one environment."""
    pair: float = Field(1.0, gt=0)
    """What is left to the single task."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where pairs sit among the factors; one index per pair and kind of factor."""

    environment: Ints
    hint: Ints
    pattern: Ints
    cell: Ints

    def take(self, rows: Ints | NDArray[np.bool_]) -> Places:
        """The places of some rows."""
        return Places(self.environment[rows], self.hint[rows], self.pattern[rows], self.cell[rows])

    def join(self, other: Places) -> Places:
        """These places, then the other's."""
        return Places(
            np.append(self.environment, other.environment),
            np.append(self.hint, other.hint),
            np.append(self.pattern, other.pattern),
            np.append(self.cell, other.cell),
        )


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many factors of each kind there are."""

    environments: int
    hints: int
    patterns: int
    cells: int

    def columns(self, places: Places) -> Ints:
        """Rows' crossed factors [N, 4] as columns of the dense part."""
        e = 1 + places.environment
        h = 1 + self.environments + places.hint
        q = 1 + self.environments + self.hints + places.pattern
        return np.stack([np.zeros_like(e), e, h, q], axis=1)

    def precisions(self, prior: Prior) -> Floats:
        """Prior precision of each crossed factor."""
        sd = [prior.shared, prior.environment, prior.hint, prior.pattern]
        return np.repeat(1.0 / np.square(sd), [1, self.environments, self.hints, self.patterns])


@dataclass(frozen=True, slots=True)
class Posterior:
    """Gaussian over the crossed factors x [F] and the cells [C]."""

    sizes: Sizes
    mean: Floats
    cov: Floats
    cell_mean: Floats
    cross: Floats
    """Covariance of factors and cells [F, C]."""
    cell_var: Floats

    def of(self, places: Places) -> tuple[Floats, Floats]:
        """Mean and variance of what pairs at `places` share with others: their logit without the own effect."""
        columns, cell = self.sizes.columns(places), places.cell
        mean = self.mean[columns].sum(axis=1) + self.cell_mean[cell]
        var = self.cov[columns[:, :, None], columns[:, None, :]].sum(axis=(1, 2))
        var += 2 * self.cross[columns, cell[:, None]].sum(axis=1) + self.cell_var[cell]
        return mean, np.maximum(var, 1e-9)


def fit(prior: Prior, sizes: Sizes, places: Places, precision: Floats, linear: Floats) -> Posterior:
    """The posterior given one Gaussian site exp(linear f - precision f^2 / 2) on the logit of each pair at `places`.

    With y = linear / precision, a pair says y about its shared part with variance 1 / precision + prior.pair^2. Cells
    are conditionally independent, so they leave by the Schur complement of their diagonal block.
    """
    F, C = 1 + sizes.environments + sizes.hints + sizes.patterns, sizes.cells
    columns, cell = sizes.columns(places), places.cell
    weight = precision / (1.0 + precision * prior.pair**2)
    weighted_y = linear / (1.0 + precision * prior.pair**2)
    A_FF = np.diag(sizes.precisions(prior))
    for a in range(4):
        for b in range(4):
            A_FF += sum_at(columns[:, a] * F + columns[:, b], weight, F * F).reshape(F, F)
    B_FC = sum((sum_at(columns[:, a] * C + cell, weight, F * C) for a in range(4)), np.zeros(F * C)).reshape(F, C)
    D_C = 1.0 / prior.cell**2 + sum_at(cell, weight, C)
    rhs_F = sum((sum_at(columns[:, a], weighted_y, F) for a in range(4)), np.zeros(F))
    rhs_C = sum_at(cell, weighted_y, C)
    G_FC = B_FC / D_C
    cov_FF = np.linalg.inv(A_FF - G_FC @ B_FC.T).astype(np.float64)
    mean_F = cov_FF @ (rhs_F - G_FC @ rhs_C)
    cov_FC = -cov_FF @ G_FC
    return Posterior(
        sizes=sizes,
        mean=mean_F,
        cov=cov_FF,
        cell_mean=(rhs_C - B_FC.T @ mean_F) / D_C,
        cross=cov_FC,
        cell_var=1.0 / D_C - (G_FC * cov_FC).sum(axis=0),
    )


def with_own(prior: Prior, mean: Floats, var: Floats, precision: Floats, linear: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of pairs' whole logits, from the shared part's and each pair's own site (precision 0: none).

    Given the shared part s, f = s + g (y - s) with gain g = s2 p / (1 + s2 p), and variance s2 (1 - g), s2 = pair^2.
    """
    s2 = prior.pair**2
    rest = 1.0 / (1.0 + s2 * precision)  # 1 - gain
    return rest * mean + s2 * rest * linear, rest**2 * var + s2 * rest


_GRID = np.linspace(-7.0, 7.0, 161)


def site(mean: Floats, var: Floats, successes: Floats, trials: Floats) -> tuple[Floats, Floats]:
    """Precision and linear term of the Gaussian that stands for each group's likelihood.

    It makes the posterior moments of f ~ N(mean, var) right under sigmoid(f)^k sigmoid(-f)^(n - k), with k successes of
    n: assumed-density filtering (Opper 1998; Minka 2001, ch. 3), by quadrature on a grid around the mode.
    Successes may be fractional: graded rewards in [0, 1] enter as their sum.
    """
    # The posterior falls off from its mode at least as fast as the prior does, which is what the grid spans.
    f = _mode(mean, var, successes, trials)[:, None] + np.sqrt(var)[:, None] * _GRID
    prior = -0.5 * (f - mean[:, None]) ** 2 / var[:, None]
    log_posterior = successes[:, None] * f - trials[:, None] * np.logaddexp(0.0, f) + prior
    p = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    after = (p * f).sum(axis=1)
    # No narrower than a grid cell: a group of thousands must not look like certainty.
    cell_var = var * (_GRID[1] - _GRID[0]) ** 2 / 12
    after_var = np.maximum((p * (f - after[:, None]) ** 2).sum(axis=1), cell_var)
    precision = np.maximum(
        1.0 / after_var - 1.0 / var, 1e-9
    )  # the likelihood is log-concave: positive but for rounding
    return precision, after * (precision + 1.0 / var) - mean / var


def _mode(mean: Floats, var: Floats, successes: Floats, trials: Floats) -> Floats:
    """Where k - n sigmoid(f) = (f - mean) / var, by bisection: the left side lies in [-n, n] and falls in f."""
    low, high = mean - trials * var, mean + trials * var
    for _ in range(40):
        middle = 0.5 * (low + high)
        rises = successes - trials * np.exp(-np.logaddexp(0.0, -middle)) > (middle - mean) / var
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return np.asarray(0.5 * (low + high))


def sum_at(index: Ints, weights: Floats, size: int) -> Floats:
    """Sums of the weights at each index below `size`."""
    return np.bincount(index, weights, minlength=size).astype(np.float64)
