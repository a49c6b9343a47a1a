"""Tables and JSON."""

from __future__ import annotations

import json
import math

import pytest

from sortie.cli.output import SCORE_COLUMNS, print_json, print_table, score_table


def test_what_is_not_known_is_a_dash_and_columns_line_up(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"name": "a", "value": 0.5}, {"name": "longer", "value": math.nan}, {"name": "b", "value": None}]
    print_table(rows, ("name", "value"), empty="none")
    assert capsys.readouterr().out.splitlines() == ["name    value", "a       0.500", "longer  -", "b       -"]


def test_an_empty_table_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([], ("name",), empty="nothing here")
    assert capsys.readouterr().out == "nothing here\n"


def test_json_never_holds_nan(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"mean": math.nan})
    assert json.loads(capsys.readouterr().out) == {"mean": None}


def test_pooled_comes_last() -> None:
    score = {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 10}
    rows = score_table({"pooled": score, "z": score, "a": score})
    assert [row["environment"] for row in rows] == ["a", "z", "pooled"]
    assert set(rows[0]) == set(SCORE_COLUMNS)
