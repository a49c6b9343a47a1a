"""Collections of tasks, and how they are divided into what is trained on and what is held out.

Which split a task belongs to follows from its content alone: adding rows, levels or seeds moves no task, and the two
splits never share one.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

from sortie.core.errors import ConfigError
from sortie.core.task import Split, Task

HELDOUT = 0.2
"""Share of tasks held out where nothing else is declared."""

DRAWS = 1000
"""Draws for one procedural task before its level counts as exhausted."""


def split_of(identity: str, heldout: float = HELDOUT) -> Split:
    """The split of whatever has this identity; `heldout` is the expected share of held-out ones."""
    number = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "big")
    return "heldout" if number < heldout * 2**64 else "train"


class TaskList(Sequence[Task]):
    """A TaskSet that is simply there."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks = tuple(tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        return self._tasks[index]

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One drawn problem, before it has a split."""

    prompt: str
    data: Mapping[str, Any]
    identity: str
    """What train and held-out tasks must not have in common: the answer, or the wording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """One level of difficulty."""

    asks: str
    """What it asks for, in a few words."""
    turns: int
    """Turns a flawless agent takes."""
    draw: Callable[[random.Random], Draft]


class GradedTasks(Sequence[Task]):
    """Procedural tasks of one split, the levels taking turns, so that any run of indices covers all of them.

    Task i depends on (env, levels, seed, split, i) alone, never on how many are asked for.
    """

    def __init__(self, env: str, grades: Mapping[int, Grade], split: Split, *, per_level: int, seed: int = 0) -> None:
        self._env = env
        self._grades = dict(grades)
        self._split: Split = split
        self._per_level = per_level
        self._seed = seed

    def __len__(self) -> int:
        return self._per_level * len(self._grades)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        return self._tasks[index]

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        """Raises: ConfigError if a level has fewer different tasks than asked for."""
        seen: set[str] = set()
        return tuple(self._draw(level, i, seen) for i in range(self._per_level) for level in self._grades)

    def _draw(self, level: int, index: int, seen: set[str]) -> Task:
        rng = random.Random(f"{self._seed}/{self._env}/{level}/{self._split}/{index}")
        for _ in range(DRAWS):
            draft = self._grades[level].draw(rng)
            if split_of(f"{self._env}/{draft.identity}") != self._split:
                continue
            task = Task(env=self._env, prompt=draft.prompt, data=draft.data, level=level)
            if task.key not in seen:
                seen.add(task.key)
                return task
        raise ConfigError(
            f"level {level} of {self._env!r} has only about {index} {self._split} tasks, "
            f"fewer than the {self._per_level} asked for"
        )
