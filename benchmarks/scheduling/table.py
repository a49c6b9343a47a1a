"""Rows and targets of one world, from its curves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.scheduling import figures
from benchmarks.scheduling.figures import Axis, Estimate, Readings
from benchmarks.scheduling.runner import GROUPS, Curve
from benchmarks.scheduling.specs import Spec
from benchmarks.scheduling.worlds import GROUP_SIZE

Runs = Mapping[str, Mapping[int, Curve]]
"""Label to seed to run."""
Row = dict[str, Any]
OURS = "envsched"
NOT_RIVALS = ("oracle", "regression", OURS)


def budget_of(steps: int, axis: Axis) -> float:
    """What `uniform` is given: updates, rollouts, or mean costs of a rollout."""
    return float(steps if axis == "updates" else steps * GROUPS * GROUP_SIZE)


def read_all(spec: Spec, runs: Runs, steps: int, axis: Axis) -> dict[str, Readings]:
    """Readings of every scheduler."""
    start = spec.drift_at or 0.0
    return {
        label: figures.readings(curves, runs["uniform"], axis, budget_of(steps, axis), start)
        for label, curves in runs.items()
    }


def estimates(read: Mapping[str, Readings], label: str) -> dict[str, Estimate]:
    """Figures of one scheduler; shares only where the oracle ran."""
    own, uniform, oracle = read[label], read["uniform"], read.get("oracle")
    found = {"steps": figures.mean(own.steps), "area": figures.mean(own.area), "final": figures.mean(own.final)}
    if oracle is not None:
        found["share"] = figures.share(own.final, uniform.final, oracle.final)
        found["share_area"] = figures.share(own.area, uniform.area, oracle.area)
    return found


def rows(spec: Spec, runs: Runs, steps: int) -> list[Row]:
    """One row per scheduler and axis; `cost` only where rollouts differ in cost."""
    axes: tuple[Axis, ...] = ("rollouts",) if spec.dearest == 1.0 else ("rollouts", "cost")
    out = []
    for axis in axes:
        read = read_all(spec, runs, steps, axis)
        updates = read_all(spec, runs, steps, "updates")
        for label, curves in runs.items():
            row: Row = {"world": spec.name, "scheduler": label, "matched": axis, "seeds": len(curves)}
            row.update(estimates(read, label))
            row["updates"] = figures.mean(updates[label].steps)
            row["informative"] = float(np.mean([np.mean(curve.informative[1:]) for curve in curves.values()]))
            row["ms_per_update"] = float(
                np.median([1e3 * curve.seconds / (len(curve.score) - 1) for curve in curves.values()])
            )
            out.append(row)
    return out


def flat(row: Row) -> Row:
    """Estimates as NAME, NAME_low and NAME_high."""
    out: Row = {}
    for name, value in row.items():
        if isinstance(value, Estimate):
            out |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
        else:
            out[name] = value
    return out


def targets(spec: Spec, runs: Runs, steps: int) -> list[Row]:
    """What issue 5 asks of EnvSched in this world; empty where it or `uniform` did not run."""
    if OURS not in runs:
        return []
    axis: Axis = "rollouts" if spec.dearest == 1.0 else "cost"
    read = read_all(spec, runs, steps, axis)
    ours, out = read[OURS], []
    if spec.structured:
        found = estimates(read, OURS)
        out.append(_reached(f"{spec.name}: share of uniform's {axis}", found["steps"], 0.5, low_is_good=True))
        if "share" in found:
            out.append(_reached(f"{spec.name}: share of the oracle's gain", found["share"], 0.85))
    else:
        change = figures.mean(ours.final / read["uniform"].final)
        out.append(_reached(f"{spec.name}: final score against uniform's", change, 0.98))
    rivals = [label for label in runs if re.split("[:,]", label)[0] not in NOT_RIVALS]
    for label in rivals:
        lead = figures.mean(ours.area - read[label].area)
        met = lead.low > 0 if spec.structured else lead.high >= 0
        name = f"{spec.name}: area ahead of {label}" if spec.structured else f"{spec.name}: area not behind {label}"
        out.append(target(name, lead, 0.0, met))
    return out


def _reached(name: str, found: Estimate, wanted: float, *, low_is_good: bool = False) -> Row:
    return target(name, found, wanted, found.value <= wanted if low_is_good else found.value >= wanted)


def target(name: str, found: Estimate, wanted: float, met: bool) -> Row:
    """A target in the shape that all benchmarks share; not measured where its value is no number."""
    return {
        "name": name,
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "target": wanted,
        "met": met if np.isfinite(found.value) else None,
    }
