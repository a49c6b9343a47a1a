"""Step by step, what was predicted against what came; and over the run, how far predictions could be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sortie.orchestrator.schedule.spent import SpentGroup, mean
from sortie.orchestrator.schedule.waste import TAUGHT

BINS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One step. What was predicted is None where the run kept no record, or its scheduler says nothing."""

    step: int
    groups: dict[str, int]
    """By environment, replaced ones included."""
    predicted_informative: float | None
    informative: float | None
    predicted_variance: float | None
    variance: float | None
    coverage: float | None
    """Share of what the scheduler tells apart that has been tried: see its `metrics`."""
    wasted: float | None
    """Share of rollouts that taught nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Groups of which about the same was predicted."""

    groups: int
    predicted: float
    realised: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How predictions made before rolling out compare with what came, over all groups with both."""

    what: str
    """`informative` (chance that rewards differ), `success` (mean reward) or `variance`."""
    groups: int
    error: float
    """Mean over bins of equal size of |predicted - realised|, weighted by groups (Naeini et al. 2015's ECE)."""
    rank_correlation: float | None
    """Spearman's, between predicted and realised; None if either never varies."""
    bins: tuple[Bin, ...]


def step_reports(
    groups: Sequence[SpentGroup],
    fates: Sequence[Sequence[str]],
    metrics: Sequence[Mapping[str, Any]],
    *,
    from_metrics: bool,
) -> tuple[StepReport, ...]:
    """One per finished step, in order; with `from_metrics`, what was predicted is the mean that each step logged."""
    made = []
    for line in sorted(metrics, key=lambda line: int(line["step"])):
        at = [(group, fate) for group, fate in zip(groups, fates, strict=True) if group.step == line["step"]]
        here = [group for group, _ in at]
        rollouts = [one for _, of_group in at for one in of_group]
        expected = [group.expected for group in here if group.expected is not None]
        if from_metrics:
            chance, variance = (line.get(f"scheduler/predicted_{name}") for name in ("informative_share", "variance"))
        else:
            chance, variance = mean(e.chance for e in expected), mean(e.variance for e in expected)
        counts: dict[str, int] = {}
        for group in here:
            counts[group.environment] = counts.get(group.environment, 0) + 1
        made.append(
            StepReport(
                step=int(line["step"]),
                groups=counts,
                predicted_informative=chance,
                informative=mean(float(group.informative) for group in here),
                predicted_variance=variance,
                variance=mean(group.variance for group in here),
                coverage=line.get("scheduler/coverage"),
                wasted=mean(float(fate != TAUGHT) for fate in rollouts),
            )
        )
    return tuple(made)


def calibrations(groups: Sequence[SpentGroup]) -> tuple[Calibration, ...]:
    """Of what was predicted per group; empty where nothing was recorded."""
    pairs: dict[str, list[tuple[float, float]]] = {"informative": [], "variance": [], "success": []}
    for group in groups:
        expected, success, variance = group.expected, group.success, group.variance
        if expected is None or success is None or variance is None:
            continue
        if expected.chance is not None:
            pairs["informative"].append((expected.chance, float(group.informative)))
        pairs["variance"].append((expected.variance, variance))
        pairs["success"].append((expected.mean, success))
    return tuple(_calibration(what, np.array(points)) for what, points in pairs.items() if points)


def _calibration(what: str, points: NDArray[np.float64]) -> Calibration:
    order = np.argsort(points[:, 0], kind="stable")
    bins = tuple(
        Bin(groups=len(part), predicted=float(points[part, 0].mean()), realised=float(points[part, 1].mean()))
        for part in np.array_split(order, min(BINS, len(order)))
    )
    error = sum(b.groups * abs(b.predicted - b.realised) for b in bins) / len(points)
    return Calibration(
        what=what, groups=len(points), error=error, rank_correlation=_spearman(points[:, 0], points[:, 1]), bins=bins
    )


def _spearman(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    if np.ptp(a) < 1e-9 or np.ptp(b) < 1e-9:
        return None
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ties share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2.0)[inverse])
