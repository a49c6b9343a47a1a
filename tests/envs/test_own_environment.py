"""The README's environment of one's own, as it is printed there."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from env_runs import call, play

from sortie.core.task import Task
from sortie.envs import Env

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "old_units.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def everything(env: Env) -> list[Task]:
    return [*env.tasks("train"), *env.tasks("heldout")]


async def test_its_tasks_can_be_solved_with_its_tool_and_not_without(example: dict[str, Any]) -> None:
    env = example["env"]
    for task in everything(env):
        amount, unit = str(task.prompt).removeprefix("How many metres are ").rstrip("?").split()
        turn = call("to_metres", amount=float(amount), unit=unit)
        assert (await play(env, task, [turn, f"{task.data['metres']} metres."])).reward == 1.0
        assert (await play(env, task, ["About ten."])).reward == 0.0


def test_its_rows_may_as_well_stand_in_a_file(example: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "old_units.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in example["tasks"]()))
    env: Env = example["env"]
    assert {t.key for t in everything(Env(env.name, tasks=path))} == {t.key for t in everything(env)}


def test_it_has_something_to_train_on_and_something_held_out(example: dict[str, Any]) -> None:
    env = example["env"]
    assert len(env.tasks("train")) > len(env.tasks("heldout")) > 0
