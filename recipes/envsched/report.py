"""Print what the kept results say: success, steps and rollouts to uniform's final score, wasted rollouts.

    python recipes/envsched/report.py [--json]

Intervals are 95% over seeds: Student's t for means, a bootstrap over seeds for ratios. Success at matched rollouts is
read off each seed's curve, by linear interpolation, where it has made as many rollouts as uniform of that seed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import records
from records import Point, Result

HERE = Path(__file__).parent
T95 = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145)
"""Two-sided 95% quantiles of Student's t for 1 to 14 degrees of freedom."""
RESAMPLES = 2000
RATIO, GAIN = 0.6, 0.0
"""Targets: at most this share of uniform's steps, and more than this above its success."""

Interval = tuple[float, float, float]
"""Value, low, high."""


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean with a t interval; without bounds (nan) for one value."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return mean, math.nan, math.nan
    t = T95[n - 2] if n - 2 < len(T95) else 1.96 + 2.5 / (n - 1)
    half = t * float(np.std(values, ddof=1)) / math.sqrt(n)
    return mean, mean - half, mean + half


def at(curve: Sequence[Point], where: str, value: float) -> float:
    """Success where the column `where` (step, rollouts, train_s) has this value; its end values beyond the curve."""
    return float(np.interp(value, [getattr(p, where) for p in curve], [p.success for p in curve]))


def reached(curves: Sequence[Sequence[Point]], where: str, target: float) -> float:
    """Where the mean success of these runs first reaches the target; infinite if it never does."""
    x = np.mean([[getattr(p, where) for p in curve] for curve in curves], axis=0)
    y = np.mean([[p.success for p in curve] for curve in curves], axis=0)
    for i in range(len(x)):
        if y[i] >= target:
            share = (target - y[i - 1]) / (y[i] - y[i - 1]) if i else 1.0
            return float(x[i - 1] + share * (x[i] - x[i - 1])) if i else float(x[0])
    return math.inf


def ratio_interval(ours: Sequence[Result], uniform: Sequence[Result], where: str) -> Interval:
    """Where `ours` reach uniform's final success, over where uniform ends; seeds resampled together for the bounds."""

    def ratio(chosen: Sequence[int]) -> float:
        target = float(np.mean([uniform[i].curve[-1].success for i in chosen]))
        whole = float(np.mean([getattr(uniform[i].curve[-1], where) for i in chosen]))
        return reached([ours[i].curve for i in chosen], where, target) / whole

    n = len(ours)
    if n < 2:
        return ratio(range(n)), math.nan, math.nan
    draws = np.random.default_rng(0).integers(0, n, (RESAMPLES, n))
    ratios = np.sort([ratio(chosen) for chosen in draws.tolist()])
    return ratio(range(n)), float(ratios[int(0.025 * RESAMPLES)]), float(ratios[int(0.975 * RESAMPLES)])


def row_of(name: str, ours: Sequence[Result], uniform: Sequence[Result]) -> dict[str, Any]:
    """One scheduler against uniform, seed by seed in the same order."""

    def each(figure: Callable[[Result, Result], float]) -> Interval:
        return mean_interval([figure(mine, theirs) for mine, theirs in zip(ours, uniform, strict=True)])

    def matched(mine: Result, theirs: Result) -> float:
        return at(mine.curve, "rollouts", theirs.curve[-1].rollouts)

    return {
        "scheduler": name,
        "seeds": len(ours),
        "start": each(lambda mine, _: mine.curve[0].success),
        "final": each(lambda mine, _: mine.curve[-1].success),
        "matched_rollouts": each(matched),
        "over_uniform": each(lambda mine, theirs: matched(mine, theirs) - theirs.curve[-1].success),
        "matched_seconds": each(lambda mine, theirs: at(mine.curve, "train_s", theirs.curve[-1].train_s)),
        "steps_ratio": ratio_interval(ours, uniform, "step"),
        "rollouts_ratio": ratio_interval(ours, uniform, "rollouts"),
        "wasted": each(lambda mine, _: 1.0 - float(np.average(mine.informative, weights=mine.rollouts))),
        "rollouts": each(lambda mine, _: float(sum(mine.rollouts))),
        "train_s": each(lambda mine, _: mine.curve[-1].train_s),
    }


def compare(results: Sequence[Result]) -> list[dict[str, Any]]:
    """A row per scheduler, over the seeds that it shares with uniform.

    Raises: ValueError if there is no run of uniform to compare with.
    """
    by_name: dict[str, dict[int, Result]] = {}
    for result in results:
        by_name.setdefault(result.scheduler, {})[result.seed] = result
    if "uniform" not in by_name:
        raise ValueError("no result of uniform to compare with; run runner.py --schedulers uniform,...")
    rows = []
    for name in sorted(by_name, key=lambda name: (name != "uniform", name)):
        seeds = sorted(set(by_name[name]) & set(by_name["uniform"]))
        if seeds:
            rows.append(
                row_of(name, [by_name[name][seed] for seed in seeds], [by_name["uniform"][seed] for seed in seeds])
            )
    return rows


def targets_of(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The issue's targets for envsched; not measured (null) without at least two seeds of it."""
    ours = next((row for row in rows if row["scheduler"] == "envsched" and row["seeds"] > 1), None)
    ratio = ours["steps_ratio"] if ours else (None, None, None)
    gain = ours["over_uniform"] if ours else (None, None, None)
    return [
        _target("steps to uniform's final score, share of its steps", ratio, RATIO, ours and ratio[0] <= RATIO),
        _target(
            "success over uniform's at matched rollouts, above 0 outside the interval",
            gain,
            GAIN,
            ours and gain[1] > GAIN,
        ),
    ]


def _target(name: str, interval: Sequence[float | None], target: float, met: Any) -> dict[str, Any]:
    value, low, high = interval
    return {
        "name": name,
        "value": value,
        "low": low,
        "high": high,
        "target": target,
        "met": None if met is None else bool(met),
    }


def plain(value: Any) -> Any:
    """JSON has neither nan nor infinity: null stands for both."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cell(value: Any) -> str:
    """`0.31 [0.28, 0.34]`; `never` for what is not reached."""
    if not isinstance(value, tuple):
        return str(value)
    shown = [
        "never" if v == math.inf else "-" if math.isnan(v) else f"{v:.0f}" if abs(v) >= 10 else f"{v:.3f}"
        for v in value
    ]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]"


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows in columns."""
    lines = [list(rows[0]), *([cell(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder of results")
    given = parser.parse_args(arguments)
    found = records.read_all(given.results)
    settings = {result.setting for result in found}
    if len(settings) != 1:
        raise SystemExit(f"{len(found)} results of {len(settings)} settings in {given.results}; one setting is needed")
    try:
        rows = compare(found)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    targets = targets_of(rows)
    if given.json:
        machine = {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count(), "os": platform.system()}
        print(
            json.dumps(plain({"benchmark": "envsched-training", "machine": machine, "rows": rows, "targets": targets}))
        )
        return 0
    print(table(rows))
    for target in targets:
        value = tuple(math.nan if v is None else v for v in (target["value"], target["low"], target["high"]))
        print(f"target {target['name']}: {cell(value)} against {target['target']:g}, met: {target['met']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
