"""The house behind the tools: rooms with exits, boxes in rooms, things in rooms, boxes or the agent's hands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sortie.core.errors import ToolError

KEY = "key"
"""The thing that opens what is locked."""

HAND = "hand"


@dataclass(slots=True)
class World:
    """One house and the agent in it. An action that is refused changes nothing."""

    at: str
    """The room the agent is in."""
    exits: dict[str, list[str]]
    """Rooms next to each room."""
    boxes: dict[str, list[str]]
    """By box: its room, and whether it is `open`, `closed` or `locked`."""
    items: dict[str, str]
    """By thing: its room, its box, or the hand."""
    taken: set[str] = field(default_factory=set)
    """Things that were in the hand at some time."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> World:
        """A house of its own, from plain data."""
        exits = {room: list(rooms) for room, rooms in data["exits"].items()}
        boxes = {box: list(state) for box, state in data["boxes"].items()}
        return cls(data["at"], exits, boxes, dict(data["items"]))

    def look(self) -> str:
        """What can be seen from where the agent is, in one line."""
        seen = [item for item, place in self.items.items() if place == self.at]
        seen += [self._label(box) for box in self.boxes_here()]
        exits = f". Exits: {', '.join(self.exits[self.at])}" if self.exits[self.at] else ""
        return f"{self.at}: {', '.join(seen) or 'nothing'}{exits}"

    def boxes_here(self) -> list[str]:
        """Boxes in the agent's room."""
        return [box for box, (room, _) in self.boxes.items() if room == self.at]

    def items_here(self) -> list[str]:
        """Things within reach: in the room or in an open box in it."""
        places = {self.at, *(box for box in self.boxes_here() if self.boxes[box][1] == "open")}
        return [item for item, place in self.items.items() if place in places]

    def holds(self, item: str) -> bool:
        """Whether a thing is in the hand."""
        return self.items.get(item) == HAND

    def placed(self, goals: Sequence[tuple[str, str]]) -> int:
        """How many of the goals, things and the boxes they belong in, are met."""
        return sum(self.items[item] == box for item, box in goals)

    def go(self, room: str) -> str:
        """Raises: ToolError naming the exits."""
        if room not in self.exits[self.at]:
            raise ToolError(f"no way to {room[:20]!r}; exits: {', '.join(self.exits[self.at]) or 'none'}")
        self.at = room
        return self.look()

    def take(self, item: str) -> str:
        """Raises: ToolError naming what is within reach."""
        if item not in self.items_here():
            raise ToolError(f"no {item[:20]!r} to take here; there is: {', '.join(self.items_here()) or 'nothing'}")
        self.items[item] = HAND
        self.taken.add(item)
        return "ok"

    def put(self, item: str, box: str) -> str:
        """Raises: ToolError if the thing is not in the hand or the box is not here and open."""
        if not self.holds(item):
            raise ToolError(f"you do not hold {item[:20]!r}; take it first")
        if self._state(box) != "open":
            raise ToolError(f"{box} is {self._state(box)}; open it first")
        self.items[item] = box
        return "ok"

    def open(self, box: str) -> str:
        """Raises: ToolError if the box is not here, or locked and the key not in the hand."""
        if self._state(box) == "locked" and not self.holds(KEY):
            raise ToolError(f"{box} is locked; take the {KEY} first")
        self.boxes[box][1] = "open"
        return self._label(box)

    def _state(self, box: str) -> str:
        if box not in self.boxes_here():
            raise ToolError(f"no box {box[:20]!r} here; there is: {', '.join(self.boxes_here()) or 'none'}")
        return self.boxes[box][1]

    def _label(self, box: str) -> str:
        state = self.boxes[box][1]
        inside = ", ".join(item for item, place in self.items.items() if place == box) or "empty"
        return f"{box} ({inside if state == 'open' else state})"
