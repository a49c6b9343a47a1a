"""The picture of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from sortie.core.errors import UsageError
from sortie.orchestrator.plot import plot_run, smooth

PNG = b"\x89PNG\r\n\x1a\n"


def score(mean: float) -> dict[str, float]:
    return {"mean": mean, "low": mean - 0.05, "high": mean + 0.05, "n": 100}


METRICS = [{"step": i, "reward/a": 0.1 * i, "reward/b": None if i == 2 else 0.2, "informative": 0.5} for i in (1, 2, 3)]
SUMMARY = {"before": {"a": score(0.1), "pooled": score(0.1)}, "after": {"a": score(0.6), "pooled": score(0.6)}}


@pytest.mark.parametrize(
    ("metrics", "summary"),
    [
        (METRICS, SUMMARY),
        (METRICS, None),
        ([], None),
        (METRICS, {"before": None, "after": SUMMARY["after"]}),
        (METRICS, {"before": {"a": {"mean": None, "low": None, "high": None, "n": 0}}, "after": SUMMARY["after"]}),
    ],
    ids=["finished", "going on", "just begun", "without before", "nothing scored before"],
)
def test_a_run_can_be_drawn_at_any_moment(metrics: list[dict[str, Any]], summary: Any, tmp_path: Path) -> None:
    path = tmp_path / "curve.png"
    plot_run(metrics, summary, path, title="a run")
    assert path.read_bytes().startswith(PNG)


def test_the_same_run_draws_the_same_picture(tmp_path: Path) -> None:
    for name in ("one", "two"):
        plot_run(METRICS, SUMMARY, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_picture_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*curve\.png"):
        plot_run(METRICS, SUMMARY, tmp_path / "nowhere" / "curve.png")


@given(st.lists(st.floats(0, 1), min_size=1))
def test_smoothing_starts_at_the_first_value_and_stays_within_the_values(values: list[float]) -> None:
    out = smooth(values)
    assert out[0] == pytest.approx(values[0])
    assert min(values) - 1e-9 <= min(out)
    assert max(out) <= max(values) + 1e-9
