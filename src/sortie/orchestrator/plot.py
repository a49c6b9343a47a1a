"""The learning curve of a run, as a picture that reads at README width.

Three panels: reward per training step, share of informative groups, and held-out success with 95% intervals. Each
environment keeps its colour throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from sortie.core.files import write_bytes
from sortie.core.run_folder import RunFolder

INK, FAINT, GRID = "#1f2430", "#8a90a0", "#e6e8ee"
COLOURS = ("#2f6fde", "#e07a1f", "#2a9d6e", "#b5459b", "#7a5cd6", "#c0392b")
POOLED = "pooled"
Metrics = Sequence[Mapping[str, Any]]
Evaluation = tuple[str, Mapping[str, Any]]
"""When it was done, and the score of each environment and of all pooled."""


def plot_run(folder: RunFolder) -> Path:
    """Draw the run's picture from what it has recorded so far.

    Raises: UsageError if it cannot be written.
    """
    info = folder.info()
    evaluations = [(event["phase"], event) for event in folder.events() if event["kind"] == "evaluation"]
    picture = draw(
        folder.metrics(), [(phase, _measured(event)) for phase, event in evaluations], f"{info.model} · {info.name}"
    )
    write_bytes(folder.curve_path, picture)
    return folder.curve_path


def draw(metrics: Metrics, evaluations: Sequence[Evaluation], title: str = "") -> bytes:
    """A PNG from `step`, `informative` and `reward/ENV` of each line of metrics, and from evaluations in order."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    envs = _environments(metrics, evaluations)
    colours = {env: COLOURS[i % len(COLOURS)] for i, env in enumerate(envs)}
    figure = Figure(figsize=(9.6, 4.2), dpi=160, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.9, 1.0), height_ratios=(2.1, 1.0))
    rewards, share, heldout = (figure.add_subplot(at) for at in (grid[0, 0], grid[1, 0], grid[:, 1]))
    _draw_rewards(rewards, metrics, colours)
    _draw_share(share, metrics)
    _draw_heldout(heldout, evaluations, colours)
    share.sharex(rewards)
    rewards.tick_params(labelbottom=False)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)
    buffer = BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def smooth(values: Sequence[float], keep: float = 0.6) -> list[float]:
    """Exponential moving average, corrected for its start (Kingma & Ba 2015, arXiv 1412.6980, section 3)."""
    out, total, weight = [], 0.0, 0.0
    for value in values:
        total, weight = keep * total + (1 - keep) * value, keep * weight + (1 - keep)
        out.append(total / weight)
    return out


def _measured(event: Mapping[str, Any]) -> dict[str, Any]:
    """The scores in an evaluation's event, of environments of which anything could be scored."""
    scores = {name: value for name, value in event.items() if isinstance(value, dict)}
    return {name: score for name, score in scores.items() if score.get("mean") is not None}


def _environments(metrics: Metrics, evaluations: Sequence[Evaluation]) -> list[str]:
    trained = {key.removeprefix("reward/") for line in metrics for key in line if key.startswith("reward/")}
    return sorted(trained | {env for _, scores in evaluations for env in scores if env != POOLED})


def _series(metrics: Metrics, key: str) -> tuple[list[float], list[float]]:
    """Steps and values; a step without the key, or where it is null, is left out."""
    points = [(line["step"], line[key]) for line in metrics if line.get(key) is not None]
    return [step for step, _ in points], [value for _, value in points]


def _draw_rewards(axes: Any, metrics: Metrics, colours: Mapping[str, str]) -> None:
    from matplotlib.ticker import MaxNLocator

    style(axes, "training reward")
    for env, colour in colours.items():
        steps, values = _series(metrics, f"reward/{env}")
        if steps:
            axes.plot(steps, values, "o", color=colour, alpha=0.3, markersize=3.5, markeredgewidth=0)
            axes.plot(steps, smooth(values), color=colour, linewidth=2.2, label=env, solid_capstyle="round")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if axes.lines:
        axes.legend(frameon=False, loc="best", fontsize=9, labelcolor=INK, handlelength=1.4)
    else:
        say(axes, "no step yet")


def _draw_share(axes: Any, metrics: Metrics) -> None:
    style(axes, "informative groups")
    steps, values = _series(metrics, "informative")
    axes.bar(steps, values, width=0.72, color="#c9d3e6")
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1], ["0", "50%", "100%"])
    axes.set_xlabel("step", color=FAINT, fontsize=9)


def _draw_heldout(axes: Any, evaluations: Sequence[Evaluation], colours: Mapping[str, str]) -> None:
    style(axes, "held-out success")
    rows = [env for env in (*colours, POOLED) if any(env in scores for _, scores in evaluations)]
    axes.set_xticks(range(len(evaluations)), [phase for phase, _ in evaluations], fontsize=10)
    if not rows:
        axes.set_yticks([])
        say(axes, "not measured yet")
        return
    width = max(1, len(evaluations) - 1)
    for i, env in enumerate(rows):
        offset = 0.05 * width * (i - (len(rows) - 1) / 2)
        points = [(x + offset, scores[env]) for x, (_, scores) in enumerate(evaluations) if env in scores]
        _draw_line(axes, points, colours.get(env, INK), bold=env == POOLED)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    _label_ends(axes, evaluations[-1][1], colours, x=len(evaluations) - 1 + 0.14 * width)
    axes.set_xlim(-0.25 * width, len(evaluations) - 1 + 0.85 * width)


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


def _label_ends(axes: Any, scores: Mapping[str, Any], colours: Mapping[str, str], x: float) -> None:
    """Name and value beside the last point of each line, moved apart where they would overlap."""
    labels = sorted((score["mean"], env) for env, score in scores.items())
    low, high = axes.get_ylim()
    gap, at = 0.06 * (high - low), float("-inf")
    heights = []
    for mean, _ in labels:
        at = max(mean, at + gap)
        heights.append(at)
    shift = sum(height - mean for height, (mean, _) in zip(heights, labels, strict=True)) / max(1, len(labels))
    for height, (mean, env) in zip(heights, labels, strict=True):
        weight = "bold" if env == POOLED else "normal"
        style = {"color": colours.get(env, INK), "fontsize": 9, "va": "center", "fontweight": weight}
        axes.annotate(f"{env} {mean:.2f}", (x, height - shift), **style)


def style(axes: Any, title: str) -> None:
    """What every panel of Sortie's pictures looks like."""
    axes.set_title(title, loc="left", fontsize=10, color=INK, pad=6)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=FAINT, labelsize=9, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GRID)


def say(axes: Any, text: str) -> None:
    """Words in the middle of a panel that has nothing to draw."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=FAINT, fontsize=9)
