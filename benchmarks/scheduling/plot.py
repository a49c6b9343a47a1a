"""Learning curves, one panel per world."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.scheduling.runner import GROUPS, Curve
from benchmarks.scheduling.worlds import GROUP_SIZE, Floats

Job = tuple[str, str, int, int]
BAND = [2.5, 97.5]
"""Percentiles over seeds that the shades span."""


def draw(path: str | Path, curves: Mapping[Job, Curve]) -> None:
    """Mean score over seeds against rollouts, in units of `uniform`'s budget; the ending of `path` says the format."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    worlds = list(dict.fromkeys(job[0] for job in curves))
    columns = min(len(worlds), 3)
    rows = -(-len(worlds) // columns)
    figure = Figure(figsize=(5.0 * columns, 3.6 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    grid = np.linspace(0.0, 1.0, 201)
    for number, world in enumerate(worlds, start=1):
        axes = figure.add_subplot(rows, columns, number)
        axes.set(title=world, xlabel="rollouts, as a share of the budget", ylabel="mean success over all pairs")
        for i, label in enumerate(dict.fromkeys(job[1] for job in curves if job[0] == world)):
            scores = np.stack([_on(grid, job, curve) for job, curve in curves.items() if job[:2] == (world, label)])
            color, dashes = f"C{i % 10}", ("-", "--", ":")[i // 10 % 3]
            axes.plot(grid, scores.mean(axis=0), label=label, color=color, linestyle=dashes)
            axes.fill_between(grid, *np.percentile(scores, BAND, axis=0), alpha=0.12, color=color)
        axes.legend(fontsize="x-small")
    figure.savefig(path, dpi=120)


def _on(grid: Floats, job: Job, curve: Curve) -> Floats:
    return np.interp(grid, np.asarray(curve.rollouts) / (job[3] * GROUPS * GROUP_SIZE), curve.score)
