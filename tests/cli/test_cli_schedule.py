"""`sortie schedule explain`: understood without the paper, as text, JSON and picture.

Pain: a scheduler is a black box, and what it wasted is never told.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from command import Command, run_command

from sortie.core.run_folder import RunFolder


def test_the_text_says_what_the_json_says(sortie: Command, at_work: Path) -> None:
    code, out, err = sortie("schedule", "explain", "first")
    assert (code, err) == (0, "")
    told = json.loads(sortie("schedule", "explain", "first", "--json")[1])
    assert out.startswith("first: tasks chosen by envsched, finished after 2 steps\n4 groups, 8 rollouts: ")
    assert f"{told['wasted_share']:.0%} of the rollouts taught nothing" in out
    (echo,) = [factor for factor in told["factors"] if factor["kind"] == "environment"]
    (row,) = [line.split() for line in out.splitlines() if line.startswith("echo ")]
    assert row[:4] == ["echo", str(echo["tasks"]), str(echo["tried"]), str(echo["whole"]["groups"])]
    assert f"{echo['whole']['variance']:.3f}" in row
    assert f"{echo['predicted_variance']:.3f}" in row
    for step in told["step_reports"]:
        line = next(line for line in out.splitlines() if re.match(rf"{step['step']} +2 ", line))
        for name in ("predicted_informative", "informative", "predicted_variance", "variance", "wasted", "coverage"):
            assert f"{step[name]:.3f}" in line, name
    for task in told["next"]:
        assert task["key"] in out
    assert max(map(len, out.splitlines())) < 250


def test_a_task_by_the_beginning_of_its_key(sortie: Command, at_work: Path) -> None:
    folder = RunFolder.open("first")
    chosen = folder.groups()[2][0]["key"]
    code, out, _ = sortie("schedule", "explain", "first", "--task", chosen[:-4])
    assert code == 0
    assert f"TASK {chosen}: say " in out
    assert "at the last select: chosen " in out
    assert "BY ENVIRONMENT" not in out
    told = json.loads(sortie("schedule", "explain", "first", "--task", chosen, "--json")[1])
    assert f"value {told['tasks'][0]['value']:.3f} = (signal " in out


def test_the_picture_is_written(sortie: Command, at_work: Path, tmp_path: Path) -> None:
    picture = tmp_path / "schedule.png"
    code, out, _ = sortie("schedule", "explain", "first", "--plot", picture)
    assert code == 0
    assert out.endswith(f"wrote {picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, _, err = sortie("schedule", "explain", "first", "--plot", tmp_path / "no" / "such" / "x.png")
    assert (code, err.count("\n")) == (2, 1)


def test_wrong_names_are_one_line_with_the_nearest(sortie: Command, at_work: Path) -> None:
    for arguments, nearest in (
        (("frist",), "did you mean 'first'"),
        (("first", "--env", "eco"), "did you mean 'echo'"),
        (("first", "--task", "echo/none"), "the nearest is echo/"),
    ):
        code, out, err = sortie("schedule", "explain", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert nearest in err


def test_uniform_says_that_it_predicts_nothing(sortie: Command, at_work: Path, tmp_path: Path) -> None:
    changes = ("--set", "scheduler.name=uniform", "--set", "steps=1", "--runs", tmp_path, "--name", "plain")
    assert run_command("train", "run.toml", *changes) == 0
    sortie("runs", "list")  # what training printed is read away
    code, out, err = sortie("schedule", "explain", "plain", "--runs", tmp_path)
    assert (code, err) == (0, "")
    assert "note: uniform predicts nothing" in out
    assert "predicted" not in out.replace("PREDICTED", "").replace("predicts", "")
