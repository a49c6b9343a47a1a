from __future__ import annotations

import pytest
from small_run import env

from sortie.core.errors import ConfigError
from sortie.core.group import Assignment, Group
from sortie.core.trajectory import Trajectory
from sortie.orchestrator.tasks import TaskBook, result_of


def test_tasks_of_two_environments_never_collide() -> None:
    """Pain F7: equal prompts in two environments are two keys."""
    book = TaskBook([env(), env(name="other")])
    keys = {record.key: record.environment for record in book.records()}
    assert set(keys.values()) == {"letters", "other"}
    assert len(keys) == 2 * len(env().tasks("train"))


def test_repeated_visits_are_numbered() -> None:
    book = TaskBook([env()])
    key = book.records()[0].key
    assert [book.visit(Assignment(i, key, 2))[2] for i in range(3)] == [0, 1, 2]


def test_equal_names_are_refused() -> None:
    with pytest.raises(ConfigError, match="share a name"):
        TaskBook([env(), env()])


def test_a_group_that_could_not_be_scored_is_abandoned() -> None:
    failed = [Trajectory(id="r", task_key="letters/1", env="letters") for _ in range(2)]
    result = result_of(Group(Assignment(4, "letters/1", 2), failed))
    assert (result.outcome, result.rewards, result.assignment) == ("abandoned", (None, None), 4)
