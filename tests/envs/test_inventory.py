from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from env_runs import by_level, call, play

from sortie.core.errors import ToolError
from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.envs import build
from sortie.envs.catalog.inventory.shop import Inventory

ENV = build("inventory", levels=[1, 2, 3, 4, 5, 6], tasks_per_level=20, heldout_per_level=20)
TASKS = by_level(ENV, 8)
TASK = Task(
    env="inventory",
    prompt="Reserve 3 lamps.",
    data={
        "stock": {"lamps": {"shop": 8, "depot": 2}},
        "goal": {"stock": {"lamps": {"shop": 8, "depot": 2}}, "reserved": {"lamps": 3}, "ordered": {}},
        "calls": [["reserve", {"item": "lamps", "n": 3}]],
    },
)
RESERVE = call("reserve", item="lamps", n=3)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
async def test_the_oracle_scores_one_and_doing_nothing_zero(task: Task) -> None:
    assert ENV.oracle is not None
    solved = await play(ENV, task, ENV.oracle(task))
    assert (solved.reward, solved.parse_errors, any(record.error for record in solved.tools)) == (1.0, 0, False)
    assert (await play(ENV, task, ["Done."])).reward == 0.0


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
def test_the_goal_is_what_the_prompt_says(task: Task) -> None:
    assert read(str(task.prompt), task.data["stock"]) == task.data["goal"]


@pytest.mark.parametrize(
    ("says", "reward"),
    [
        ([RESERVE, "Done."], 1.0),
        ([call("check", item="lamps"), RESERVE, "Done."], 1.0),
        ([call("reserve", item="lamp", n=3), RESERVE, "Done."], 1.0),
        ([call("reserve", item="lamps", n="3"), "Done."], 1.0),
        ([call("reserve", item="lamps", n=2), "Done."], 0.0),
        ([RESERVE, call("order", item="lamps", n=1), "Done."], 0.0),
        ([RESERVE, RESERVE, "Done."], 0.0),
        ([call("reserve", item="lamps", n=-3), "Done."], 0.0),
        ([RESERVE, *[call("check", item="lamps")] * 5], 0.0),
    ],
)
async def test_the_final_state_must_be_the_goal_and_the_agent_must_end(
    says: list[Message | str], reward: float
) -> None:
    assert (await play(ENV, TASK, says)).reward == reward


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        (call("reserve", item="lamp", n=3), "error: no item 'lamp'; there are: lamps"),
        (call("reserve", item="lamps", n=9), "error: only 8 lamps are free in the shop"),
        (call("order", item="lamps", n=0), "error: n must be at least 1"),
        (call("move", item="lamps", n=3), "error: only 2 lamps are in the depot"),
        (call("move", item="lamps", n="some"), "argument 'n'"),
        (call("reserve", item="lamps", n=1, at="shop"), "there is no argument 'at'"),
        (call("sell", item="lamps", n=1), "there is no tool 'sell'; there is: check, order, move, reserve"),
    ],
)
async def test_a_call_that_cannot_be_changes_nothing_and_says_why(turn: Message, says: str) -> None:
    """Pain C1."""
    trajectory = await play(ENV, TASK, [turn, RESERVE, "Done."])
    assert says in trajectory.tools[0].output
    assert trajectory.reward == 1.0


async def test_siblings_on_one_task_do_not_share_a_shop() -> None:
    both = await asyncio.gather(play(ENV, TASK, [RESERVE, "Done."]), play(ENV, TASK, [RESERVE, "Done."]))
    assert [trajectory.reward for trajectory in both] == [1.0, 1.0]
    assert TASK.data["stock"] == {"lamps": {"shop": 8, "depot": 2}}


def test_reserved_pieces_are_not_free() -> None:
    inventory = Inventory.of({"lamps": {"shop": 8, "depot": 2}})
    inventory.reserve("lamps", 6)
    with pytest.raises(ToolError, match="only 2 lamps are free"):
        inventory.reserve("lamps", 3)


def read(prompt: str, stock: dict[str, dict[str, int]]) -> dict[str, Any]:
    """The state a prompt asks for, by reading it; shares no code with what drew it."""
    goal: dict[str, Any] = {"stock": {k: dict(v) for k, v in stock.items()}, "reserved": {}, "ordered": {}}
    for change in changes(prompt.lower().rstrip("."), stock):
        verb, count, item = change.removesuffix(" to the shop").split()
        if verb == "move":
            goal["stock"][item]["shop"] += int(count)
            goal["stock"][item]["depot"] -= int(count)
        else:
            goal[{"reserve": "reserved", "order": "ordered"}[verb]][item] = int(count)
    return goal


def changes(text: str, stock: dict[str, dict[str, int]]) -> list[str]:
    """The changes a prompt asks for, each as `verb count item`."""
    if found := re.fullmatch(r"(\w+) as many (\w+) as the (\w+) has", text):
        verb, item, place = found.groups()
        return [f"{verb} {stock[item][place]} {item}"]
    if found := re.fullmatch(r"if the (\w+) has fewer than (\d+) (\w+), (.*); otherwise (.*)", text):
        place, limit, item, yes, no = found.groups()
        return [yes if stock[item][place] < int(limit) else no]
    if found := re.fullmatch(r"reserve (\d+) (\w+), but first move what the shop lacks", text):
        count, item = found.groups()
        return [f"move {int(count) - stock[item]['shop']} {item}", f"reserve {count} {item}"]
    pattern = r"order (\d+) of whichever the shop has fewer of, (\w+) or (\w+), and move the other's whole depot stock"
    if found := re.fullmatch(pattern, text):
        count, *pair = found.groups()
        fewer, more = sorted(pair, key=lambda item: stock[item]["shop"])
        return [f"order {count} {fewer}", f"move {stock[more]['depot']} {more}"]
    return text.split(", then ")
