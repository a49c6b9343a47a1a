from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from sortie.core.errors import ConfigError
from sortie.core.task import Split
from sortie.envs import build
from sortie.envs.taskset import Draft, Grade, GradedTasks, split_of

CATALOG = ["arithmetic", "booking", "filesystem", "guess", "inventory", "python_tests"]
ALL = [1, 2, 3, 4, 5, 6]


def small(name: str, seed: int = 0, levels: list[int] = ALL, each: int = 6) -> dict[Split, list[tuple[str, str]]]:
    """(prompt, key) of the tasks of both splits."""
    env = build(name, levels=levels, seed=seed, tasks_per_level=each, heldout_per_level=each)
    splits: tuple[Split, ...] = ("train", "heldout")
    return {split: [(str(task.prompt), task.key) for task in env.tasks(split)] for split in splits}


@settings(deadline=None, max_examples=15)
@given(st.sampled_from(CATALOG), st.integers(), st.integers())
def test_no_seed_and_no_level_puts_a_prompt_in_both_splits(name: str, one: int, other: int) -> None:
    train = {prompt for prompt, _ in small(name, one)["train"]}
    heldout = {prompt for prompt, _ in small(name, other)["heldout"]}
    assert not train & heldout


def test_no_held_out_result_of_arithmetic_is_ever_the_result_of_a_training_task() -> None:
    env = build("arithmetic", levels=ALL, tasks_per_level=100, heldout_per_level=50)
    train, heldout = ({task.data["result"] for task in env.tasks(split)} for split in ("train", "heldout"))
    assert not train & heldout


@pytest.mark.parametrize("name", CATALOG)
def test_an_index_is_the_same_task_however_many_are_asked_for(name: str) -> None:
    few, many = small(name, each=4), small(name, each=9)
    assert all(many[split][: len(few[split])] == few[split] for split in few)


@pytest.mark.parametrize(
    ("name", "prompts"),
    [
        ("booking", ["Jim: table Thursday at 8 for 6.", "Henry: table Friday at 5.", "Kate: table at 8."]),
        ("guess", ["Guess 586 to 588, 2 tries.", "Guess 670 to 676, 3 tries.", "Guess 219 to 233, 4 tries."]),
        ("arithmetic", ["What is 17*41?", "What is 95*17+387?", "What is 26*15+24*48?"]),
        (
            "inventory",
            [
                "Reserve 9 coins.",
                "Move 27 balls to the shop.",
                "Order 51 paints, then reserve 53 clocks.",
            ],
        ),
    ],
)
def test_an_index_is_the_same_task_for_ever(name: str, prompts: list[str]) -> None:
    assert [task.prompt for task in build(name).tasks("train")[:3]] == prompts


@pytest.mark.parametrize("name", CATALOG)
def test_tasks_are_different_and_the_levels_take_turns(name: str) -> None:
    env = build(name, levels=[2, 5], tasks_per_level=50)
    tasks = list(env.tasks("train"))
    assert [task.level for task in tasks] == [2, 5] * 50
    assert len({task.key for task in tasks}) == 100


@pytest.mark.parametrize("name", CATALOG)
def test_there_are_thousands_of_tasks_in_the_narrowest_level(name: str) -> None:
    assert len(build(name, levels=[1], tasks_per_level=3000).tasks("train")) == 3000


def test_another_seed_gives_other_tasks() -> None:
    assert small("arithmetic", 1)["train"] != small("arithmetic", 2)["train"]


def test_an_exhausted_level_says_so() -> None:
    def draw(rng: Random) -> Draft:
        return Draft(prompt=str(rng.randint(1, 5)), data={}, identity="one for all")

    split = split_of("coins/one for all")
    tasks = GradedTasks("coins", {1: Grade(asks="a coin", turns=1, draw=draw)}, split, per_level=9)
    with pytest.raises(ConfigError, match="level 1 of 'coins' has only about 5"):
        tasks[0]


@pytest.mark.parametrize("name", CATALOG)
def test_no_held_out_task_is_answered_by_a_worked_example(name: str) -> None:
    env = build(name, levels=ALL, tasks_per_level=1, heldout_per_level=200)
    shown = {example[0].content for example in env.examples}
    said = {message.content for example in env.examples for message in example[1:]} - {"", "ok", "Done."}
    heldout = list(env.tasks("heldout"))
    assert not shown & {task.prompt for task in heldout}
    assert not said & {task.data.get("result") for task in heldout}
