"""The success of every pair as one Gaussian model of logits, exact given its observations.

    logit_i(t) = level + family + environment + hint + pattern + cell + own_i + sum_k learning_k exposure_ik(t)

Each term has an independent normal prior of mean 0, but that like hints (and like patterns) have like effects: the
covariance of hints is strength^2 ((1 - similarity) I + similarity likeness). A cell is one hint inside one environment.
Exposure k is the training done so far in the pair's environment, hint, pattern, or anywhere; its coefficients, which
are how fast the learner improves there, are unknowns like the others. Ours, on the ground of crossed random effects
(Gelman & Hill 2007, ch. 13) and random regression.

Own effects, cells and environments leave by Schur complements of their diagonal blocks, in this order, so that only
the D crossed factors need a dense solve: O(N + (C + E) D^2 + D^3) for N observations, C cells and E environments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sortie.scheduling.factors import Factors, Floats, Ints, Observations
from sortie.scheduling.strengths import Strengths


@dataclass(frozen=True, slots=True)
class Level:
    """Effects of one kind that were eliminated: effect_g = offset_g - pull_g x + keep_g parent + N(0, variance_g)."""

    offset: Floats
    pull: Floats
    """[G, D]"""
    keep: Floats
    """What a unit of the parent's effect moves offspring by: 1 without observations, less where they decide."""
    variance: Floats


@dataclass(frozen=True, slots=True)
class Posterior:
    """Gaussian over the crossed factors x [D], and the eliminated cells and environments given x."""

    factors: Factors
    strengths: Strengths
    mean: Floats
    cov: Floats
    cells: Level
    environments: Level
    log_evidence: float
    """Of the observations' values, but for what does not depend on the strengths."""


def fit(strengths: Strengths, factors: Factors, seen: Observations) -> Posterior:
    """The posterior of everything shared, and the log marginal likelihood."""
    C = len(factors.cell_environment)
    weight = seen.precision / (1.0 + seen.precision * strengths.pair**2)  # own effects leave
    said = weight > 0
    log_evidence = 0.5 * float(np.log(weight[said]).sum() - (weight * seen.value**2).sum())
    prior_DD, log_det_prior = _prior(strengths, factors)
    A_DD, rhs_D = _crossed(factors, seen, weight)
    A_DD += prior_DD
    B_CD = _coupling(factors, seen, weight)
    p_C, rhs_C = sum_at(seen.cell, weight, C), sum_at(seen.cell, weight * seen.value, C)
    cells, log_cells = _eliminate(strengths.cell, p_C, B_CD, rhs_C, A_DD, rhs_D)
    E = len(factors.family)
    parent = _Sum(factors.cell_environment, E)
    keep = cells.keep
    environments, log_environments = _eliminate(
        strengths.environment, parent(p_C * keep), parent(B_CD * keep[:, None]), parent(rhs_C * keep), A_DD, rhs_D
    )
    root = np.linalg.cholesky(A_DD)
    cov_DD: Floats = np.linalg.inv(A_DD).astype(np.float64)
    mean_D = cov_DD @ rhs_D
    log_det = 2.0 * float(np.log(np.diag(root)).sum())
    log_evidence += log_cells + log_environments + 0.5 * (log_det_prior - log_det + float(rhs_D @ mean_D))
    return Posterior(factors, strengths, mean_D, cov_DD, cells, environments, log_evidence)


def _eliminate(
    strength: float, p_G: Floats, B_GD: Floats, rhs_G: Floats, A_DD: Floats, rhs_D: Floats
) -> tuple[Level, float]:
    """Remove effects with diagonal precision from A and rhs, in place; also their share of the log evidence."""
    a_G = strength**-2.0 + p_G
    pull_GD = B_GD / a_G[:, None]
    A_DD -= B_GD.T @ pull_GD
    rhs_D -= pull_GD.T @ rhs_G
    share = 0.5 * float((rhs_G**2 / a_G - np.log(strength**2 * a_G)).sum())
    return Level(rhs_G / a_G, pull_GD, 1.0 - p_G / a_G, 1.0 / a_G), share


def _prior(strengths: Strengths, factors: Factors) -> tuple[Floats, float]:
    """Prior precision of the crossed factors [D, D], and its log determinant."""
    D, s = factors.dense, strengths
    prior = np.zeros((D, D))
    single = [1.0 / s.level**2, *[1.0 / s.family**2] * factors.families]
    k = len(single)
    prior[range(k), range(k)] = single
    slopes = factors.exposures
    prior[slopes, slopes] = np.eye(slopes.stop - slopes.start) / s.learning**2
    log_det = float(np.log(single).sum()) - 2.0 * (slopes.stop - slopes.start) * np.log(s.learning)
    blocks = (
        (factors.first_hint, factors.hint_likeness, s.hint),
        (factors.first_pattern, factors.pattern_likeness, s.pattern),
    )
    for first, likeness, strength in blocks:
        n = len(likeness)
        cov = strength**2 * ((1.0 - s.similarity) * np.eye(n) + s.similarity * likeness)
        prior[first : first + n, first : first + n] = np.linalg.inv(cov)
        log_det -= float(np.linalg.slogdet(cov)[1])
    return prior, float(log_det)


def _crossed(factors: Factors, seen: Observations, weight: Floats) -> tuple[Floats, Floats]:
    """Precision [D, D] and right-hand side [D] that the observations give the crossed factors."""
    D, slopes = factors.dense, factors.exposures
    columns = factors.columns(seen.cell, seen.hint, seen.pattern)
    A = np.zeros(D * D)
    for a in range(4):
        for b in range(a, 4):
            part = sum_at(columns[:, a] * D + columns[:, b], weight, D * D)
            A += part
            if a != b:
                A += part.reshape(D, D).T.ravel()
    A_DD, rhs_D = A.reshape(D, D), np.zeros(D)
    weighted = weight[:, None] * seen.exposure
    for a in range(4):
        rhs_D += sum_at(columns[:, a], weight * seen.value, D)
        for k in range(weighted.shape[1]):
            part = sum_at(columns[:, a], weighted[:, k], D)
            A_DD[slopes.start + k] += part
            A_DD[:, slopes.start + k] += part
    A_DD[slopes, slopes] += weighted.T @ seen.exposure + seen.scatter[:-1, :-1]
    rhs_D[slopes] += weighted.T @ seen.value + seen.scatter[:-1, -1]
    return A_DD, rhs_D


def _coupling(factors: Factors, seen: Observations, weight: Floats) -> Floats:
    """Precision between cells and crossed factors [C, D]."""
    C, D = len(factors.cell_environment), factors.dense
    B_CD = np.zeros((C, D))
    total = sum_at(seen.cell, weight, C)
    B_CD[:, 0] = total
    B_CD[np.arange(C), 1 + factors.family[factors.cell_environment]] = total
    for first, index, n in (
        (factors.first_hint, seen.hint, factors.hints),
        (factors.first_pattern, seen.pattern, factors.patterns),
    ):
        B_CD[:, first : first + n] = sum_at(seen.cell * n + index, weight, C * n).reshape(C, n)
    for k in range(seen.exposure.shape[1]):
        B_CD[:, factors.exposures.start + k] = sum_at(seen.cell, weight * seen.exposure[:, k], C)
    return B_CD


class _Sum:
    """Sums of rows over the groups they belong to."""

    def __init__(self, group: Ints, size: int) -> None:
        self._order = np.argsort(group, kind="stable")
        self._present, self._first = np.unique(group[self._order], return_index=True)
        self._size = size

    def __call__(self, rows: Floats) -> Floats:
        out = np.zeros((self._size, *rows.shape[1:]))
        if len(self._first):
            out[self._present] = np.add.reduceat(rows[self._order], self._first, axis=0)
        return out


def sum_at(index: Ints, weights: Floats, size: int) -> Floats:
    """Sums of the weights at each index below `size`."""
    return np.bincount(index, weights, minlength=size).astype(np.float64)
