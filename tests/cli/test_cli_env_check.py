"""`sortie env check` as its user sees it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Command

MODULE = """
import sortie

@sortie.reward(inline=True)
def polite(answer: str | None) -> bool:
    return "OK" in (answer or "")

def solve(task):
    return [sortie.assistant("OK")]

env = sortie.Env("polite", tasks=[{"prompt": f"Be polite, {n}."} for n in range(9)], rewards=[polite], oracle=solve)
"""


@pytest.fixture
def gullible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An environment of one's own whose reward is easily fooled."""
    (tmp_path / "my_gullible_env.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield "my_gullible_env:env"
    sys.modules.pop("my_gullible_env", None)


def test_a_sound_environment_is_a_table_without_failures(sortie: Command) -> None:
    code, out, _ = sortie("env", "check", "booking", "--tasks", "1", "--level", "1", "--level", "5")
    assert code == 0
    head, *lines = out.splitlines()
    assert head.startswith("level  oracle scores 1  idle scores 0  same episode  no trace  hostile scores 0")
    assert [line.split()[:3] for line in lines] == [["1", "1/1", "2/2"], ["5", "1/1", "2/2"]]


def test_one_that_can_be_fooled_says_how_and_fails(sortie: Command, gullible: str) -> None:
    code, out, _ = sortie("env", "check", gullible, "--tasks", "1")
    assert code == 1
    assert "failed: hostile scores 0: markers: scored 1 (task 'Be polite, " in out


def test_the_findings_can_be_had_as_json(sortie: Command, gullible: str) -> None:
    code, out, _ = sortie("env", "check", gullible, "--tasks", "1", "--json")
    result = json.loads(out)
    assert (code, result["env"], result["ok"]) == (1, gullible, False)
    assert [check["check"] for check in result["checks"] if check["failed"]] == ["hostile scores 0"]


def test_a_wrong_name_is_one_line(sortie: Command) -> None:
    code, _, err = sortie("env", "check", "bookin")
    assert code == 2
    assert "did you mean 'booking'?" in err
