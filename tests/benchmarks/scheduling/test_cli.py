"""The command, from options to table, JSON and plot."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.scheduling import cache, cli, specs
from benchmarks.scheduling.ablations import ABLATIONS


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "ROOT", tmp_path / "cache")
    monkeypatch.setitem(specs.SPECS, "base", replace(specs.SPECS["base"], pairs=200, steps=3))
    cli.make.cache_clear()


def test_json_and_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "curves.png"
    cli.main(["--seeds", "2", "--schedulers", "oracle,envsched:cap=0.5", "--json", "--plot", str(plot)])
    shown = json.loads(capsys.readouterr().out)
    assert shown["benchmark"] == "scheduling"
    assert [row["scheduler"] for row in shown["rows"]] == ["uniform", "oracle", "envsched:cap=0.5"]
    assert all(row["seeds"] == 2 for row in shown["rows"])
    assert plot.stat().st_size > 10_000
    cli.main(["--seeds", "2", "--schedulers", "oracle"])
    out = capsys.readouterr()
    assert "share_area" in out.out
    assert "4 runs kept from before, 0 to do" in out.err


def test_ablations_are_named_and_are_no_rivals(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["--seeds", "2", "--first-seed", "5", "--schedulers", "envsched", "--ablations", "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert [row["scheduler"] for row in shown["rows"]] == ["uniform", "envsched", *ABLATIONS]
    assert [row["name"] for row in shown["targets"]] == [
        "base: share of uniform's rollouts",
        "base: area ahead of uniform",
    ]
    areas = {row["scheduler"]: row["area"] for row in shown["rows"]}
    assert areas["envsched, no graph"] != areas["envsched"], "an option without effect is no ablation"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--world", "nowhere"], "no world 'nowhere'; choose from base, hints"),
        (["--schedulers", "nobody"], "no scheduler 'nobody'; choose from bots"),
    ],
)
def test_unknown_names_are_told(given: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(given)
    assert told in capsys.readouterr().err


def test_list_names_worlds_and_schedulers(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["--list"])
    out = capsys.readouterr().out
    assert all(name in out for name in ("base", "forgetting", "envsched", "oracle", "vcrl"))
