"""Figures of one world: each with its bootstrap 95% interval over seeds, schedulers paired by seed.

Scores are read at equal spending, of rollouts or of cost. Definitions, ours:

* `steps`: spending at which the scheduler's score reaches, for good, what `uniform` has at the end of the budget, as a
  share of the budget. One that never does so gets its own spending / (what `uniform` spends to reach its final score)
  instead, which continues the same measure: above 1 where the spending is the budget.
* `share`: (final - uniform's) / (oracle's - uniform's), of means over seeds; `share_area` the same of areas.
* `area`: mean score over the budget; `final`: score at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.scheduling.runner import Curve

Floats = NDArray[np.float64]
Axis = Literal["updates", "rollouts", "cost"]
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, slots=True)
class Readings:
    """What one scheduler reached, one entry per seed."""

    steps: Floats
    area: Floats
    final: Floats


def reaches(x: Floats, y: Floats, level: float) -> float | None:
    """Where y reaches `level` and stays there, linear between points; None if it ends below."""
    above = y >= level
    if not above[-1]:
        return None
    below = np.flatnonzero(~above)
    if not len(below):
        return float(x[0])
    i = int(below[-1])
    return float(x[i] + (x[i + 1] - x[i]) * (level - y[i]) / (y[i + 1] - y[i]))


def spent(curve: Curve, axis: Axis) -> Floats:
    """A curve's x values."""
    if axis == "updates":
        return np.arange(len(curve.score), dtype=float)
    return np.asarray(getattr(curve, axis), dtype=float)


def read(curve: Curve, uniform: Curve, axis: Axis, budget: float, start: float = 0.0) -> tuple[float, float, float]:
    """`steps`, `area` and `final` of one seed; `steps` counts from the share `start` of the budget."""
    x, y = _within(curve, axis, budget)
    x_u, y_u = _within(uniform, axis, budget)
    first, whole = start * budget, (1.0 - start) * budget
    at = reaches(x, y, float(y_u[-1]))
    if at is not None:
        steps = max(at - first, 0.0) / whole
    else:
        back = reaches(x_u, y_u, float(y[-1]))
        own = min(float(spent(curve, axis)[-1]), budget) - first
        steps = own / max((x_u[-1] if back is None else back) - first, 1e-9 * whole)
    return steps, float((np.diff(x) * (y[1:] + y[:-1])).sum() / 2.0 / budget), float(y[-1])


def readings(
    curves: Mapping[int, Curve], uniform: Mapping[int, Curve], axis: Axis, budget: float, start: float = 0.0
) -> Readings:
    """Of all seeds, in order."""
    rows = [read(curves[seed], uniform[seed], axis, budget, start) for seed in sorted(curves)]
    return Readings(*(np.array(column) for column in zip(*rows, strict=True)))


def mean(values: Floats, seed: int = 0) -> Estimate:
    """Mean over seeds."""
    return _bootstrap(lambda rows: values[rows].mean(axis=1), len(values), seed)


def share(values: Floats, uniform: Floats, oracle: Floats, seed: int = 0) -> Estimate:
    """Gain over uniform as a share of the oracle's."""
    gain, most = values - uniform, oracle - uniform
    return _bootstrap(lambda rows: gain[rows].mean(axis=1) / most[rows].mean(axis=1), len(values), seed)


def _within(curve: Curve, axis: Axis, budget: float) -> tuple[Floats, Floats]:
    """The curve up to the budget, with a last point exactly there (its last value where it ends before)."""
    x, y = spent(curve, axis), np.asarray(curve.score, dtype=float)
    inside = x < budget
    return np.append(x[inside], budget), np.append(y[inside], np.interp(budget, x, y))


def _bootstrap(statistic: Callable[[NDArray[np.int64]], Floats], n: int, seed: int) -> Estimate:
    rows = np.random.default_rng(seed).integers(n, size=(RESAMPLES, n))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(np.arange(n)[None])[0])
        low, high = np.nanpercentile(statistic(rows), [2.5, 97.5]) if np.isfinite(value) else (np.nan, np.nan)
    return Estimate(value, float(low), float(high))
