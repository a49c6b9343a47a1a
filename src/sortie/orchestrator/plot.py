"""The learning curve of a run, as a picture that reads at README width.

Three panels: reward per training step, share of informative groups, and held-out success before and after with 95%
intervals. Each environment keeps its colour throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from sortie.core.files import write_bytes

INK, FAINT, GRID = "#1f2430", "#8a90a0", "#e6e8ee"
COLOURS = ("#2f6fde", "#e07a1f", "#2a9d6e", "#b5459b", "#7a5cd6", "#c0392b")
POOLED = "pooled"
Metrics = Sequence[Mapping[str, Any]]


def plot_run(metrics: Metrics, summary: Mapping[str, Any] | None, path: Path, *, title: str = "") -> None:
    """Draw `path` (PNG) from a run's metrics and, once there is one, its summary.

    Reads `step`, `reward/ENV`, `informative` of each line, and `before` and `after` of the summary.
    Raises: UsageError if the file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    scores = [_measured(summary, "before"), _measured(summary, "after")]
    envs = _environments(metrics, scores)
    colours = {env: COLOURS[i % len(COLOURS)] for i, env in enumerate(envs)}
    figure = Figure(figsize=(9.6, 4.2), dpi=160, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.9, 1.0), height_ratios=(2.1, 1.0))
    rewards, share, heldout = (figure.add_subplot(at) for at in (grid[0, 0], grid[1, 0], grid[:, 1]))
    _draw_rewards(rewards, metrics, colours)
    _draw_share(share, metrics)
    _draw_heldout(heldout, scores, colours)
    share.sharex(rewards)
    rewards.tick_params(labelbottom=False)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)
    buffer = BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    write_bytes(path, buffer.getvalue())


def smooth(values: Sequence[float], keep: float = 0.6) -> list[float]:
    """Exponential moving average, corrected for its start (Kingma & Ba 2015, arXiv 1412.6980, section 3)."""
    out, total, weight = [], 0.0, 0.0
    for value in values:
        total, weight = keep * total + (1 - keep) * value, keep * weight + (1 - keep)
        out.append(total / weight)
    return out


def _measured(summary: Mapping[str, Any] | None, when: str) -> dict[str, Any]:
    """Scores of environments of which anything could be scored."""
    found = (summary or {}).get(when) or {}
    return {env: score for env, score in found.items() if score["mean"] is not None}


def _environments(metrics: Metrics, scores: Sequence[Mapping[str, Any]]) -> list[str]:
    trained = {key.removeprefix("reward/") for line in metrics for key in line if key.startswith("reward/")}
    return sorted(trained | {env for score in scores for env in score if env != POOLED})


def _series(metrics: Metrics, key: str) -> tuple[list[float], list[float]]:
    """Steps and values; a step without the key, or where it is null, is left out."""
    points = [(line["step"], line[key]) for line in metrics if line.get(key) is not None]
    return [step for step, _ in points], [value for _, value in points]


def _draw_rewards(axes: Any, metrics: Metrics, colours: Mapping[str, str]) -> None:
    from matplotlib.ticker import MaxNLocator

    _style(axes, "training reward")
    for env, colour in colours.items():
        steps, values = _series(metrics, f"reward/{env}")
        if steps:
            axes.plot(steps, values, "o", color=colour, alpha=0.3, markersize=3.5, markeredgewidth=0)
            axes.plot(steps, smooth(values), color=colour, linewidth=2.2, label=env, solid_capstyle="round")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if axes.lines:
        axes.legend(frameon=False, loc="best", fontsize=9, labelcolor=INK, handlelength=1.4)
    else:
        _say(axes, "no step yet")


def _draw_share(axes: Any, metrics: Metrics) -> None:
    _style(axes, "informative groups")
    steps, values = _series(metrics, "informative")
    axes.bar(steps, values, width=0.72, color="#c9d3e6")
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1], ["0", "50%", "100%"])
    axes.set_xlabel("step", color=FAINT, fontsize=9)


def _draw_heldout(axes: Any, scores: Sequence[Mapping[str, Any]], colours: Mapping[str, str]) -> None:
    _style(axes, "held-out success, before and after")
    rows = [env for env in (*colours, POOLED) if any(env in score for score in scores)]
    axes.set_xlim(-0.35, 1.35)
    axes.set_xticks([0, 1], ["before", "after"], fontsize=10)
    if not rows:
        _say(axes, "measured when the run ends")
        return
    for i, env in enumerate(rows):
        offset = 0.05 * (i - (len(rows) - 1) / 2)
        points = [(x + offset, score[env]) for x, score in enumerate(scores) if env in score]
        _draw_line(axes, points, colours.get(env, INK), bold=env == POOLED)
    _label_ends(axes, scores, rows, colours)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))


def _draw_line(axes: Any, points: list[tuple[float, Mapping[str, float]]], colour: str, *, bold: bool) -> None:
    xs = [x for x, _ in points]
    means = [score["mean"] for _, score in points]
    below = [max(0.0, score["mean"] - score["low"]) for _, score in points]
    above = [max(0.0, score["high"] - score["mean"]) for _, score in points]
    axes.errorbar(
        xs,
        means,
        [below, above],
        color=colour,
        marker="o",
        markersize=7 if bold else 5,
        linewidth=2.6 if bold else 1.6,
        elinewidth=1.4,
        capsize=3.5,
    )


def _label_ends(
    axes: Any, scores: Sequence[Mapping[str, Any]], rows: Sequence[str], colours: Mapping[str, str]
) -> None:
    """Name and value beside the last point of each line, moved apart where they would overlap."""
    last = scores[1] or scores[0]
    labels = sorted((last[env]["mean"], env) for env in rows if env in last)
    low, high = axes.get_ylim()
    gap, at = 0.06 * (high - low), float("-inf")
    heights = []
    for mean, _ in labels:
        at = max(mean, at + gap)
        heights.append(at)
    shift = sum(height - mean for height, (mean, _) in zip(heights, labels, strict=True)) / max(1, len(labels))
    x = 1.14 if scores[1] else 0.14
    for height, (mean, env) in zip(heights, labels, strict=True):
        weight = "bold" if env == POOLED else "normal"
        place = (x, height - shift)
        axes.annotate(
            f"{env} {mean:.2f}", place, color=colours.get(env, INK), fontsize=9, va="center", fontweight=weight
        )
    axes.set_xlim(-0.25, 1.85 if scores[1] else 1.25)


def _style(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10, color=INK, pad=6)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=FAINT, labelsize=9, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GRID)


def _say(axes: Any, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=FAINT, fontsize=9)
