"""Tasks and their keys."""

from __future__ import annotations

from sortie.core.messages import user
from sortie.core.task import Task


def test_equal_content_is_an_equal_key_wherever_it_was_made() -> None:
    """Pain F7."""
    one = Task(env="e", prompt="2+2?", data={"a": 1, "b": 2})
    other = Task(env="e", prompt="2+2?", data={"b": 2, "a": 1}, level=3)
    assert one.key == other.key


def test_the_same_id_in_two_environments_is_two_keys() -> None:
    """Pain F7."""
    assert Task(env="a", prompt="", id="0").key == "a/0"
    assert Task(env="b", prompt="", id="0").key == "b/0"


def test_prompt_and_data_both_count() -> None:
    tasks = [Task(env="e", prompt="x"), Task(env="e", prompt="x", data={"a": 1}), Task(env="e", prompt=(user("x"),))]
    assert len({task.key for task in tasks}) == 3
