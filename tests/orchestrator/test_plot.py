"""The picture of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from sortie.core.run_folder import RunFolder
from sortie.orchestrator.plot import draw, plot_run, smooth

PNG = b"\x89PNG\r\n\x1a\n"


def score(mean: float) -> dict[str, float]:
    return {"mean": mean, "low": mean - 0.05, "high": mean + 0.05, "n": 100}


METRICS = [{"step": i, "reward/a": 0.1 * i, "reward/b": None if i == 2 else 0.2, "informative": 0.5} for i in (1, 2, 3)]
BEFORE, AFTER = {"a": score(0.1), "pooled": score(0.1)}, {"a": score(0.6), "pooled": score(0.6)}
UNSCORED = {"mean": None, "low": None, "high": None, "n": 0}


@pytest.mark.parametrize(
    ("metrics", "evaluations"),
    [
        (METRICS, {"before": BEFORE, "after": AFTER}),
        (METRICS, {"before": BEFORE, "step 2": AFTER, "after": AFTER}),
        (METRICS, {"after": AFTER}),
        (METRICS, {}),
        ([], {}),
        (METRICS, {"before": {"a": UNSCORED, "pooled": UNSCORED}, "after": AFTER}),
    ],
    ids=["finished", "with evaluations between", "without before", "going on", "just begun", "nothing scored before"],
)
def test_a_run_can_be_drawn_at_any_moment(
    metrics: list[dict[str, Any]], evaluations: dict[str, Any], tmp_path: Path
) -> None:
    with RunFolder.create(tmp_path, "one") as run:
        for line in metrics:
            run.append_metrics(line)
        for phase, scores in evaluations.items():
            run.append_event("evaluation", phase=phase, step=0, **scores)
        path = plot_run(run)
    assert path == tmp_path / "one" / "learning_curve.png"
    assert path.read_bytes().startswith(PNG)


def test_the_same_run_draws_the_same_picture_and_another_run_another() -> None:
    evaluations = [("before", BEFORE), ("after", AFTER)]
    assert draw(METRICS, evaluations) == draw(METRICS, evaluations)
    assert draw(METRICS, evaluations) != draw(METRICS[:2], evaluations)
    assert draw(METRICS, evaluations) != draw(METRICS, evaluations[:1])


@given(st.lists(st.floats(0, 1), min_size=1))
def test_smoothing_starts_at_the_first_value_and_stays_within_the_values(values: list[float]) -> None:
    out = smooth(values)
    assert out[0] == pytest.approx(values[0])
    assert min(values) - 1e-9 <= min(out)
    assert max(out) <= max(values) + 1e-9
