from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from env_runs import by_level, call, play

from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.core.trajectory import StopReason
from sortie.envs import build

ENV = build("text_world", levels=[1, 2, 3, 4, 5, 6], tasks_per_level=20, heldout_per_level=20)
TASKS = by_level(ENV, 5)
WORLD = {
    "at": "hall",
    "exits": {"hall": ["attic"], "attic": ["hall"]},
    "boxes": {"chest": ["hall", "closed"], "safe": ["attic", "locked"], "bag": ["attic", "open"]},
    "items": {"cup": "hall", "pen": "attic", "key": "bag", "ring": "chest"},
}
TASK = Task(
    env="text_world",
    prompt="hall: cup, chest (closed). Exits: attic\nPut the cup in the chest and the pen in the safe.",
    data={"world": WORLD, "goals": [["cup", "chest"], ["pen", "safe"]], "calls": []},
)
TAKE_CUP = call("take", item="cup")
OPEN_CHEST = call("open", box="chest")
PUT_CUP = call("put", item="cup", box="chest")
UP = call("go", room="attic")
REST = [
    UP,
    call("take", item="pen"),
    call("take", item="key"),
    call("open", box="safe"),
    call("put", item="pen", box="safe"),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt!r}")
async def test_the_oracle_scores_one_and_doing_nothing_zero(task: Task) -> None:
    assert ENV.oracle is not None
    solved = await play(ENV, task, ENV.oracle(task))
    assert (solved.reward, solved.stop_reason) == (1.0, StopReason.ENV_DONE)
    assert not any(record.error for record in solved.tools)
    assert (await play(ENV, task, [""])).reward == 0.0


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt!r}")
async def test_the_oracle_acts_on_nothing_that_it_has_not_seen(task: Task) -> None:
    assert ENV.oracle is not None
    played = await play(ENV, task, ENV.oracle(task))
    seen = words(str(task.prompt).splitlines()[0])
    held: set[str] = set()
    for record in played.tools:
        assert set(record.arguments.values()) <= seen | held
        if record.name == "take":
            held.add(record.arguments["item"])
        seen |= words(record.output)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt!r}")
def test_the_prompt_names_every_goal(task: Task) -> None:
    wanted = " and ".join(f"the {item} in the {box}" for item, box in task.data["goals"])
    assert str(task.prompt).endswith(f"\nPut {wanted}.")


@pytest.mark.parametrize(
    ("says", "reward"),
    [
        ([TAKE_CUP, OPEN_CHEST, PUT_CUP, *REST], 1.0),
        ([TAKE_CUP, "Done."], 0.25),
        ([TAKE_CUP, OPEN_CHEST, PUT_CUP, "Done."], 0.5),
        ([TAKE_CUP, OPEN_CHEST, PUT_CUP, *REST[:2], "Done."], 0.75),
        ([TAKE_CUP, OPEN_CHEST, PUT_CUP, TAKE_CUP, "Done."], 0.25),
        ([OPEN_CHEST, call("take", item="ring"), "Done."], 0.0),
        (["The cup is in the chest and the pen in the safe."], 0.0),
    ],
)
async def test_each_sub_goal_counts_and_all_make_one(says: list[Message | str], reward: float) -> None:
    assert (await play(ENV, TASK, says)).reward == reward


async def test_the_last_thing_put_in_place_ends_the_rollout() -> None:
    played = await play(ENV, TASK, [TAKE_CUP, OPEN_CHEST, PUT_CUP, *REST, "never said"])
    assert (played.tools[-1].output, played.turns, played.answer) == ("all done", 8, None)


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        (call("take", item="pen"), "error: no 'pen' to take here; there is: cup"),
        (call("take", item="ring"), "error: no 'ring' to take here; there is: cup"),
        (call("go", room="cellar"), "error: no way to 'cellar'; exits: attic"),
        (call("open", box="safe"), "error: no box 'safe' here; there is: chest"),
        (PUT_CUP, "error: you do not hold 'cup'; take it first"),
        (call("put", item="hand", box="chest"), "error: you do not hold 'hand'; take it first"),
    ],
)
async def test_an_action_that_cannot_be_changes_nothing_and_says_why(turn: Message, says: str) -> None:
    """Pain C1."""
    played = await play(ENV, TASK, [turn, TAKE_CUP, OPEN_CHEST, PUT_CUP, *REST])
    assert (played.tools[0].output, played.reward) == (says, 1.0)


async def test_boxes_must_be_open_and_locked_ones_need_the_key() -> None:
    safe = call("open", box="safe")
    played = await play(ENV, TASK, [TAKE_CUP, PUT_CUP, UP, safe, call("take", item="key"), safe, "Done."])
    outputs = [record.output for record in played.tools]
    assert outputs[1] == "error: chest is closed; open it first"
    assert outputs[2] == "attic: pen, safe (locked), bag (key). Exits: hall"
    assert outputs[3] == "error: safe is locked; take the key first"
    assert outputs[5] == "safe (empty)"


async def test_siblings_on_one_task_do_not_share_a_house() -> None:
    says = [TAKE_CUP, OPEN_CHEST, PUT_CUP, *REST]
    both = await asyncio.gather(play(ENV, TASK, says), play(ENV, TASK, says))
    assert [played.reward for played in both] == [1.0, 1.0]
    assert WORLD["items"] == {"cup": "hall", "pen": "attic", "key": "bag", "ring": "chest"}
    assert WORLD["boxes"] == {"chest": ["hall", "closed"], "safe": ["attic", "locked"], "bag": ["attic", "open"]}


def test_no_held_out_goal_is_trained_on() -> None:
    env = build("text_world", levels=[1, 4, 6], tasks_per_level=100, heldout_per_level=50)

    def goals(split: Any) -> set[frozenset[tuple[str, str]]]:
        return {frozenset((item, box) for item, box in task.data["goals"]) for task in env.tasks(split)}

    assert not goals("train") & goals("heldout")


def test_the_example_walks_where_walking_is_needed() -> None:
    def tools(levels: list[int]) -> list[str]:
        (example,) = build("text_world", levels=levels).examples
        return [tool_call.name for message in example for tool_call in message.tool_calls]

    assert tools([1, 2]) == ["take", "open", "put"]
    assert tools([2, 3]) == ["go", "take", "go", "open", "put"]


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))
