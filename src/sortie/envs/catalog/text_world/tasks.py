"""Six levels of putting things in their place, drawn from a seeded generator.

A task's data: `world`, how the house starts; `goals`, things and the boxes they belong in; `calls`, one way there,
found by looking around. Goals are held out as a whole: no held-out set of goals is ever one of a training task,
whatever the house.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from sortie.core.messages import Message, ToolCall, assistant
from sortie.core.task import Task
from sortie.envs.catalog.text_world.explorer import solve
from sortie.envs.catalog.text_world.world import KEY, World
from sortie.envs.taskset import Draft, Grade

ROOMS = ("kitchen", "hall", "attic", "garden", "cellar", "office", "garage", "library")
BOXES = ("chest", "box", "bag", "basket", "drawer", "safe")
# fmt: off
ITEMS = (
    "lamp", "cup", "pen", "book", "shoe", "plate", "knife", "clock", "phone", "shirt", "ring", "ball", "rope", "bowl",
    "coin", "doll", "flag", "glove", "mask", "nail", "spoon", "hat", "map", "card",
)
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class _House:
    """What a level draws."""

    calls: range
    """How many calls it must take; other houses are drawn anew."""
    rooms: int = 1
    boxes: int = 1
    items: int = 2
    goals: int = 1
    closed: bool = False
    """Whether boxes start closed."""
    hidden: bool = False
    """Whether things lie in boxes."""
    locked: bool = False
    """Whether the first goal's box is locked."""

    def draw(self, rng: Random) -> Draft:
        while True:
            world = self._world(rng)
            targets = rng.sample(sorted(world["boxes"]), min(self.goals, self.boxes))
            items = rng.sample(sorted(set(world["items"]) - {KEY}), self.goals)
            goals = [(item, rng.choice(targets)) for item in items]
            if self.locked:
                world["boxes"][goals[0][1]][1] = "locked"
            if not self._fair(world, goals):
                continue
            calls = solve(World.of(world), goals)
            if len(calls) in self.calls:
                return _draft(world, goals, calls)

    def _world(self, rng: Random) -> dict[str, Any]:
        rooms = rng.sample(ROOMS, self.rooms)
        exits: dict[str, list[str]] = {rooms[0]: []}
        for room in rooms[1:]:
            near = rng.choice(sorted(exits))
            exits[near].append(room)
            exits[room] = [near]
        state = "closed" if self.closed else "open"
        boxes = {box: [rng.choice(rooms), state] for box in rng.sample(BOXES, self.boxes)}
        names = [*rng.sample(ITEMS, self.items), *([KEY] if self.locked else [])]
        places = [*rooms, *boxes] if self.hidden else rooms
        return {
            "at": rng.choice(rooms),
            "exits": exits,
            "boxes": boxes,
            "items": {n: rng.choice(places) for n in names},
        }

    def _fair(self, world: dict[str, Any], goals: Sequence[tuple[str, str]]) -> bool:
        """Nothing starts in its place, and nothing is locked away."""
        where = world["items"]
        return all(where[item] != box for item, box in goals) and all(
            state != "locked" or box not in where.values() for box, (_, state) in world["boxes"].items()
        )


def oracle(task: Task) -> Sequence[Message]:
    """The calls one by one; the last one ends the rollout."""
    return [assistant("", ToolCall(name=name, arguments=arguments)) for name, arguments in task.data["calls"]]


def hostile(task: Task) -> Sequence[Sequence[Message]]:
    """Puts what it does not hold, takes what is nowhere, walks through walls, names the goal."""
    (item, box), *_ = task.data["goals"]
    calls = (
        ("put", {"item": item, "box": box}),
        ("put", {"item": box, "box": box}),
        ("put", {"item": "hand", "box": box}),
        ("take", {"item": box}),
        ("take", {"item": "hand"}),
        ("go", {"room": box}),
        ("go", {"room": "hand"}),
        ("open", {"box": item}),
    )
    each = [assistant("", ToolCall(name=name, arguments=arguments)) for name, arguments in calls]
    return [*([call, assistant("all done")] for call in each), each, [assistant(f"the {item} is in the {box}")]]


def _draft(world: dict[str, Any], goals: Sequence[tuple[str, str]], calls: Sequence[Any]) -> Draft:
    wanted = " and ".join(f"the {item} in the {box}" for item, box in goals)
    data = {"world": world, "goals": [list(goal) for goal in goals], "calls": [list(call) for call in calls]}
    identity = ", ".join(sorted(f"{item} in {box}" for item, box in goals))
    return Draft(prompt=f"{World.of(world).look()}\nPut {wanted}.", data=data, identity=identity)


def _grade(asks: str, house: _House) -> Grade:
    return Grade(asks=asks, turns=house.calls[-1], draw=house.draw)


GRADES = {
    1: _grade("take a thing and put it in an open box", _House(calls=range(2, 3))),
    2: _grade("the box is closed", _House(calls=range(3, 4), items=3, closed=True)),
    3: _grade("thing and box in two rooms", _House(calls=range(4, 6), rooms=2, closed=True)),
    4: _grade(
        "two things and two boxes in three rooms",
        _House(calls=range(7, 11), rooms=3, boxes=2, items=3, goals=2, closed=True),
    ),
    5: _grade(
        "a thing in a closed box, in four rooms",
        _House(calls=range(6, 11), rooms=4, boxes=3, items=3, closed=True, hidden=True),
    ),
    6: _grade(
        "a locked box and its key, in five rooms",
        _House(calls=range(8, 14), rooms=5, boxes=3, items=3, closed=True, hidden=True, locked=True),
    ),
}
