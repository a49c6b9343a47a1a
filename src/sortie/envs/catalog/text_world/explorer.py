"""Solves a house with nothing but what can be seen in it, so that a model may learn to do the same.

It goes where it has seen what it seeks; otherwise it opens the closed boxes of the room, then walks to the nearest room
where it has not been or has left a box closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sortie.envs.catalog.text_world.world import KEY, World

Call = tuple[str, dict[str, str]]


def solve(world: World, goals: Sequence[tuple[str, str]]) -> list[Call]:
    """The calls that bring each thing to its box, in the order of the goals. The world is changed by them."""
    explorer = _Explorer(world)
    for item, box in goals:
        explorer.bring(item, box)
    return explorer.calls


class _Explorer:
    def __init__(self, world: World) -> None:
        self.world = world
        self.calls: list[Call] = []
        self.visited: set[str] = set()
        self.known: dict[str, str] = {}
        """Room in which each box or thing was last seen."""
        self._notice()

    def bring(self, item: str, box: str) -> None:
        self._fetch(item)
        self._find(box)
        if self.world.boxes[box][1] == "locked" and not self.world.holds(KEY):
            self._fetch(KEY)
            self._find(box)
        if self.world.boxes[box][1] != "open":
            self._do("open", box=box)
        self._do("put", item=item, box=box)

    def _fetch(self, item: str) -> None:
        if not self.world.holds(item):
            self._find(item)
            self._do("take", item=item)

    def _find(self, what: str) -> None:
        while what not in self._visible():
            if what in self.known:
                room = self.known[what]
                self._step(lambda at, room=room: at == room)  # type: ignore[misc]
            elif what in self.world.items and (closed := self._closed(self.world.at)):
                self._do("open", box=closed[0])
            elif what in self.world.items:
                self._step(lambda at: at not in self.visited or bool(self._closed(at)))
            else:
                self._step(lambda at: at not in self.visited)

    def _step(self, wanted: Callable[[str], bool]) -> None:
        """One room nearer to the nearest wanted one, through rooms whose exits were seen."""
        paths = [[room] for room in self.world.exits[self.world.at]]
        reached = {self.world.at}
        for path in paths:  # grows while it is walked: breadth first
            if wanted(path[-1]):
                return self._do("go", room=path[0])
            if path[-1] in self.visited and path[-1] not in reached:
                reached.add(path[-1])
                paths += [[*path, room] for room in self.world.exits[path[-1]]]
        raise AssertionError("a room of this house cannot be reached")

    def _do(self, name: str, **arguments: str) -> None:
        getattr(self.world, name)(**arguments)
        self.calls.append((name, arguments))
        self._notice()

    def _notice(self) -> None:
        self.visited.add(self.world.at)
        self.known |= dict.fromkeys(self._visible(), self.world.at)

    def _visible(self) -> list[str]:
        return [*self.world.boxes_here(), *self.world.items_here()]

    def _closed(self, room: str) -> list[str]:
        """Boxes that were seen closed in a room."""
        return [
            box
            for box, (at, state) in self.world.boxes.items()
            if at == room and box in self.known and state == "closed"
        ]
