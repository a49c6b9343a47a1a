"""Six levels of a table to book, drawn from a seeded generator.

A task's data: `wish`, what the guest answers when asked; `free`, the times left on a day that is nearly full; `second`,
the guest's second choice of time; `change`, what the guest says after the first booking; `goal`, what must be booked
in the end; `turns`, the words and calls of one way there. First messages are held out as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from sortie.core.messages import Message, ToolCall, assistant
from sortie.core.task import Task
from sortie.envs.catalog.booking.desk import DAYS, MOST, TIMES
from sortie.envs.taskset import Draft, Grade

# fmt: off
NAMES = (
    "Adam", "Alan", "Alice", "Amy", "Anna", "Ben", "Bob", "Carl", "Clara", "Dan", "David", "Diana", "Ed", "Ella",
    "Emma", "Eric", "Eva", "Frank", "Fred", "George", "Grace", "Harry", "Helen", "Henry", "Ian", "Jack", "James",
    "Jane", "Jim", "John", "Julia", "Karl", "Kate", "Kim", "Laura", "Lee", "Leo", "Lily", "Lisa", "Lucy", "Luke",
    "Maria", "Mark", "Mary", "Max", "Mike", "Nick", "Nora", "Oliver", "Oscar", "Paul", "Peter", "Rose", "Ruth", "Sam",
    "Sara", "Simon", "Sue", "Tim", "Tom",
)
# fmt: on

QUESTIONS = {"day": "Day?", "time": "Time?", "n": "How many?"}
END = "Done."

Wish = dict[str, Any]


def oracle(task: Task) -> Sequence[Message]:
    """Questions and calls one by one, then a word to end."""
    return [
        assistant(turn) if isinstance(turn, str) else assistant("", _tool_call(*turn)) for turn in task.data["turns"]
    ]


def hostile(task: Task) -> Sequence[Sequence[Message]]:
    """Says it is booked; books what nobody wished, and more than was wished."""
    (name, (day, time, n)), *_ = task.data["goal"].items()
    other = assistant("", _tool_call(*_book(name, {"day": day, "time": time, "n": n % MOST + 1})))
    more = assistant("", _tool_call(*_book("Nobody", {"day": day, "time": time, "n": n})))
    return [
        [assistant(f"Booked {day} {time} for {n}.")],
        [other, assistant(END)],
        [*oracle(task)[:-1], more, assistant(END)],
        [*oracle(task)[:-1], assistant("", _tool_call("cancel", {"name": name})), assistant(END)],
    ]


def _asking(missing: int) -> Callable[[Random], Draft]:
    """A wish of which some parts must be asked for."""

    def draw(rng: Random) -> Draft:
        name, wish = rng.choice(NAMES), _wish(rng)
        hidden = sorted(rng.sample(list(wish), missing), key=list(wish).index)
        turns = [*(QUESTIONS[key] for key in hidden), _book(name, wish), END]
        return _draft(_said(name, wish, hidden), name, wish, turns)

    return draw


def _full(rng: Random) -> Draft:
    name, wish = rng.choice(NAMES), _wish(rng)
    free = sorted(rng.sample([time for time in TIMES if time != wish["time"]], 2))
    second = rng.choice(free)
    taken = {**wish, "time": second}
    turns = [_book(name, wish), f"{free[0]} or {free[1]}?", _book(name, taken), END]
    return _draft(_said(name, wish), name, taken, turns, first=wish, free={wish["day"]: free})


def _changed(rng: Random) -> Draft:
    name, wish = rng.choice(NAMES), _wish(rng)
    key = rng.choice(list(wish))
    other = _wish(rng)
    while other[key] == wish[key]:
        other = _wish(rng)
    changed = {**wish, key: other[key]}
    change = {"day": "Sorry, {day}.", "time": "Sorry, at {time}.", "n": "Sorry, for {n}."}[key].format(**changed)
    turns = [_book(name, wish), END, ("cancel", {"name": name}), _book(name, changed), END]
    return _draft(_said(name, wish), name, changed, turns, first=wish, change=change)


def _wish(rng: Random) -> Wish:
    return {"day": rng.choice(DAYS), "time": rng.choice(TIMES), "n": rng.randint(1, MOST)}


def _said(name: str, wish: Wish, hidden: Sequence[str] = ()) -> str:
    """The guest's first message."""
    parts = {"day": "{day}", "time": "at {time}", "n": "for {n}"}
    said = " ".join(text for key, text in parts.items() if key not in hidden).format(**wish)
    return f"{name}: table {said}".rstrip() + "."


def _book(name: str, wish: Wish) -> tuple[str, dict[str, Any]]:
    return "book", {"name": name, **wish}


def _tool_call(tool: str, arguments: Mapping[str, Any]) -> ToolCall:
    return ToolCall(name=tool, arguments=arguments)


def _draft(
    prompt: str,
    name: str,
    last: Wish,
    turns: Sequence[Any],
    *,
    first: Wish | None = None,
    free: Mapping[str, Sequence[int]] | None = None,
    change: str = "",
) -> Draft:
    data = {
        "wish": first or last,
        "free": dict(free or {}),
        "second": last["time"],
        "change": change,
        "goal": {name: [last["day"], last["time"], last["n"]]},
        "turns": [turn if isinstance(turn, str) else list(turn) for turn in turns],
    }
    return Draft(prompt=prompt, data=data, identity=prompt)


GRADES = {
    1: Grade(asks="everything is said", turns=2, draw=_asking(0)),
    2: Grade(asks="ask for one thing", turns=3, draw=_asking(1)),
    3: Grade(asks="ask for two things", turns=4, draw=_asking(2)),
    4: Grade(asks="ask for everything", turns=5, draw=_asking(3)),
    5: Grade(asks="the time is taken: offer what is free", turns=4, draw=_full),
    6: Grade(asks="a wish changes after the booking", turns=5, draw=_changed),
}
