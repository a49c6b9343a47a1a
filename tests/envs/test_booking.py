from __future__ import annotations

import re
from typing import Any

import pytest
from env_runs import by_level, call, play

from sortie.core.errors import ToolError
from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.envs import build
from sortie.envs.catalog.booking.desk import Desk
from sortie.envs.catalog.booking.guest import answer

ENV = build("booking", levels=[1, 2, 3, 4, 5, 6], tasks_per_level=20, heldout_per_level=20)
TASKS = by_level(ENV, 6)


def a_task(**data: Any) -> Task:
    """Ann wants Friday at 7 for 4, and has said the day only."""
    wish = {"day": "Friday", "time": 7, "n": 4}
    whole = {"wish": wish, "free": {}, "second": 7, "change": "", "goal": {"Ann": ["Friday", 7, 4]}, "turns": []}
    return Task(env="booking", prompt="Ann: table Friday.", data={**whole, **data})


def book(name: str = "Ann", day: str = "Friday", time: Any = 7, n: Any = 4) -> Message:
    return call("book", name=name, day=day, time=time, n=n)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
async def test_the_oracle_scores_one_and_doing_nothing_zero(task: Task) -> None:
    assert ENV.oracle is not None
    solved = await play(ENV, task, ENV.oracle(task))
    assert (solved.reward, solved.parse_errors) == (1.0, 0)
    assert (await play(ENV, task, ["Done."] * 3)).reward == 0.0


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
def test_the_first_message_says_a_part_of_the_wish_and_nothing_else(task: Task) -> None:
    name, day, time, n = re.fullmatch(
        r"(\w+): table(?: (\w+day))?(?: at (\d+))?(?: for (\d+))?\.", str(task.prompt)
    ).groups()  # type: ignore[union-attr]
    wish = task.data["wish"]
    assert list(task.data["goal"]) == [name]
    said = {"day": day, "time": time and int(time), "n": n and int(n)}
    assert {key: value for key, value in said.items() if value is not None}.items() <= wish.items()
    missing = sum(value is None for value in said.values())
    assert missing == {1: 0, 2: 1, 3: 2, 4: 3, 5: 0, 6: 0}[task.level or 0]


@pytest.mark.parametrize(
    ("says", "reward"),
    [
        (["Time?", "How many?", book(), "Done."], 1.0),
        (["At what time, and for how many?", "And how many people?", book(time="7"), "Done."], 1.0),
        ([book(), "Done."], 1.0),
        ([book(n=5), "Done."], 0.0),
        ([book(n=5), call("cancel", name="Ann"), book(), "Done."], 1.0),
        ([book(), book("Bob"), "Done."], 0.0),
        ([book(), call("cancel", name="Ann"), "Done."], 0.0),
        ([book("Anna"), "Done."], 0.0),
        (["Booked for Friday at 7 for 4."], 0.0),
        ([book()] * 9, 0.0),
    ],
)
async def test_exactly_the_wished_table_must_be_booked_and_the_agent_must_end(
    says: list[Message | str], reward: float
) -> None:
    assert (await play(ENV, a_task(), says)).reward == reward


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("what day?", "Friday."),
        ("on friday, at what time?", "7."),
        ("what time and which day?", "7."),
        ("how many guests?", "4."),
        ("today?", "Pardon?"),
        ("6 or 8?", "8."),
        ("7 or 8?", "7."),
        ("is 9 fine?", "No."),
    ],
)
def test_the_guest_answers_what_is_asked_first(question: str, says: str) -> None:
    assert answer(question, {**a_task().data, "second": 8}) == says


async def test_a_change_of_mind_is_said_once_and_after_the_first_end() -> None:
    task = a_task(change="Sorry, for 5.", goal={"Ann": ["Friday", 7, 5]})
    again = [book(), "Done.", call("cancel", name="Ann"), book(n=5), "Done."]
    assert (await play(ENV, task, again)).reward == 1.0
    assert (await play(ENV, task, [book(n=5), "Done.", "Done."])).reward == 1.0
    assert (await play(ENV, task, [book(), "Done.", "Done."])).reward == 0.0


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        (book(time=8), "error: full; free: 6, 7"),
        (book(day="Fri"), "error: no day 'Fri'; days: Monday"),
        (book(n=0), "error: n must be 1 to 9"),
        (book(n="some"), "argument 'n'"),
        (call("cancel", name="Ann"), "error: Ann has no table"),
    ],
)
async def test_a_call_that_cannot_be_changes_nothing_and_says_why(turn: Message, says: str) -> None:
    """Pain C1."""
    played = await play(ENV, a_task(free={"Friday": [6, 7]}), [turn, book(), "Done."])
    assert says in played.tools[0].output
    assert played.reward == 1.0


def test_one_name_has_one_table() -> None:
    desk = Desk(free={})
    desk.book("Ann", "Friday", 7, 4)
    with pytest.raises(ToolError, match="cancel it first"):
        desk.book("Ann", "Sunday", 7, 4)
    assert desk.booked == {"Ann": ("Friday", 7, 4)}
