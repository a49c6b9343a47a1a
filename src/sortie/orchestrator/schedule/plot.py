"""A run's schedule as one picture: predictions against what came, coverage, waste, and groups per environment."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from sortie.core.files import write_bytes
from sortie.orchestrator.plot import COLOURS, FAINT, INK, say, style
from sortie.orchestrator.schedule.report import ScheduleReport
from sortie.orchestrator.schedule.steps import StepReport

PREDICTED, CAME = "#e07a1f", "#2f6fde"
OTHERS = "other environments"


def plot_schedule(told: ScheduleReport, path: Path) -> Path:
    """Write the picture as PNG.

    Raises: UsageError if it cannot be written.
    """
    write_bytes(path, draw(told))
    return path


def draw(told: ScheduleReport) -> bytes:
    """The picture; panels without data say so."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 7.0), dpi=150, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    (variance, trust), (covered, spent) = figure.subplots(2, 2)
    _variance(variance, told.step_reports)
    _trust(trust, told)
    _coverage_and_waste(covered, told.step_reports)
    _groups(spent, told.step_reports)
    title = f"{told.run} · {told.scheduler} · {told.rollouts} rollouts, {told.wasted_share:.0%} of them taught nothing"
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", color=INK)
    buffer = BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _variance(axes: Any, steps: Sequence[StepReport]) -> None:
    _style(axes, "reward variance within a group, per step", steps)
    _line(axes, steps, "variance", CAME, "came")
    _line(axes, steps, "predicted_variance", PREDICTED, "predicted before rolling out", dashed=True)
    axes.set_ylim(bottom=0)
    _legend(axes, bool(steps))


def _trust(axes: Any, told: ScheduleReport) -> None:
    _style(axes, "predicted and realised variance, groups in fifths", ())
    found = next((one for one in told.calibration if one.what == "variance"), None)
    if found is None:
        axes.set_xticks([])
        axes.set_yticks([])
        say(axes, "no predictions per group" if told.predicts else f"{told.scheduler} predicts nothing")
        return
    xs, ys = [b.predicted for b in found.bins], [b.realised for b in found.bins]
    top = 1.12 * max([*xs, *ys, 1e-3])
    axes.plot([0, top], [0, top], color=FAINT, linewidth=1, linestyle=":", label="perfect")
    axes.plot(xs, ys, "o-", color=CAME, markersize=7, linewidth=1.6, label=f"fifths of {found.groups} groups")
    axes.set_xlim(0, top)
    axes.set_ylim(0, top)
    axes.set_xlabel("predicted", color=FAINT, fontsize=9)
    axes.set_ylabel("came", color=FAINT, fontsize=9)
    _legend(axes, True)


def _coverage_and_waste(axes: Any, steps: Sequence[StepReport]) -> None:
    _style(axes, "rollouts that taught nothing, and coverage", steps)
    points = [(step.step, step.wasted) for step in steps if step.wasted is not None]
    axes.bar([x for x, _ in points], [y for _, y in points], width=0.72, color="#e9c7c2", label="taught nothing")
    _line(axes, steps, "coverage", "#2a9d6e", "coverage, as the scheduler counts it")
    axes.set_ylim(0, 1.25)
    axes.set_yticks([0, 0.5, 1], ["0", "50%", "100%"])
    axes.set_xlabel("step", color=FAINT, fontsize=9)
    _legend(axes, bool(steps))


def _groups(axes: Any, steps: Sequence[StepReport]) -> None:
    from matplotlib.ticker import MaxNLocator

    _style(axes, "groups per environment", steps)
    totals: dict[str, int] = {}
    for step in steps:
        for env, n in step.groups.items():
            totals[env] = totals.get(env, 0) + n
    order = sorted(totals, key=lambda env: (-totals[env], env))
    named = order if len(order) <= len(_PALETTE) else order[: len(_PALETTE) - 1]
    floor = [0] * len(steps)
    for i, env in enumerate([*named, OTHERS] if len(named) < len(order) else named):
        one = [_of(step, env, named) for step in steps]
        axes.bar([step.step for step in steps], one, 0.72, floor, color=_PALETTE[i], label=f"{env} {sum(one)}")
        floor = [a + b for a, b in zip(floor, one, strict=True)]
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("step", color=FAINT, fontsize=9)
    if totals:
        axes.legend(
            frameon=False, fontsize=8, labelcolor=INK, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=1
        )


_PALETTE = (*COLOURS, "#8c6d31", "#17a2b8", "#d977a6", "#9aa3b2")


def _of(step: StepReport, env: str, named: Sequence[str]) -> int:
    if env == OTHERS:
        return sum(n for name, n in step.groups.items() if name not in named)
    return step.groups.get(env, 0)


def _line(axes: Any, steps: Sequence[StepReport], name: str, colour: str, label: str, *, dashed: bool = False) -> None:
    points = [(step.step, getattr(step, name)) for step in steps if getattr(step, name) is not None]
    if points:
        style = "--" if dashed else "-"
        xs, ys = zip(*points, strict=True)
        axes.plot(xs, ys, style, marker="o", color=colour, markersize=3.5, linewidth=1.9, label=label)


def _style(axes: Any, title: str, steps: Sequence[StepReport]) -> None:
    from matplotlib.ticker import MaxNLocator

    style(axes, title)
    if steps:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _legend(axes: Any, drawn: bool) -> None:
    if not drawn:
        say(axes, "no step yet")
        return
    axes.legend(frameon=False, loc="best", fontsize=8, labelcolor=INK, handlelength=1.8)
