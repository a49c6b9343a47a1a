"""The measurement of cost by size, at sizes that take no time."""

from __future__ import annotations

import json

import pytest

from benchmarks.scheduling import scale


def test_every_size_is_measured_in_a_process_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    scale.main(["--scheduler", "uniform", "--pairs", "1000,2000", "--updates", "3", "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert [row["pairs"] for row in shown["rows"]] == [1000, 2000]
    for row in shown["rows"]:
        assert 0 < row["both_ms"] <= row["both_p99_ms"]
        assert row["updates"] == 3
    assert shown["targets"] == [], "the target is for a million"


def test_the_target_stands_at_a_million_pairs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def apart(name: str, pairs: int, updates: int) -> dict[str, object]:
        return {"scheduler": name, "pairs": pairs, "both_ms": 90.0, "both_p99_ms": 120.0}

    monkeypatch.setattr(scale, "_apart", apart)
    scale.main(["--pairs", "1000000", "--json"])
    [target] = json.loads(capsys.readouterr().out)["targets"]
    assert (target["value"], target["high"], target["target"], target["met"]) == (90.0, 120.0, 100.0, False)
