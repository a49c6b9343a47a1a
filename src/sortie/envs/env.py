"""An environment: the tasks of one domain with their tools, rewards and needs.

It holds no state of a rollout; one instance serves many at once. Tasks are read when they are first asked for, and all
of them are checked then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import cached_property
from typing import Any

from sortie.agents.agent import Agent
from sortie.agents.react import ReAct
from sortie.agents.reward import Reward
from sortie.agents.rubric import Rubric
from sortie.context.run_context import Respond, RunContext
from sortie.context.tools import ToolLike
from sortie.core.errors import ConfigError
from sortie.core.group import EnvironmentRecord
from sortie.core.messages import Message
from sortie.core.task import Split, Task, TaskSet
from sortie.envs.rows import Row, TaskSource, read_rows
from sortie.envs.taskset import HELDOUT, TaskList, split_of
from sortie.resources.spec import ResourceSpec

Setup = Callable[[Task, RunContext], AbstractAsyncContextManager[Any] | AbstractContextManager[Any]]
"""Makes the context manager that yields a rollout's state; the only reset there is."""

Oracle = Callable[[Task], Sequence[Message]]
"""The assistant messages of a flawless rollout, one per turn."""

Hostile = Callable[[Task], Sequence[Sequence[Message]]]
"""Rollouts that try to be rewarded without doing the task, each as assistant messages; the last one is repeated."""


class Env:
    """Tasks, tools, rewards and the resources they need, of one domain."""

    def __init__(
        self,
        name: str,
        *,
        tasks: TaskSource,
        tools: Iterable[ToolLike] = (),
        rewards: Iterable[Reward[Any, Any]] = (),
        agent: Agent | None = None,
        resources: Iterable[ResourceSpec[Any]] = (),
        setup: Setup | None = None,
        respond: Respond | None = None,
        description: str = "",
        system: str | None = None,
        examples: Sequence[Sequence[Message]] = (),
        heldout: TaskSource | float | None = None,
        oracle: Oracle | None = None,
        hostile: Hostile | None = None,
    ) -> None:
        """`heldout` is a source of its own, or the share of `tasks` to hold out by content hash (a fifth if not given);
        a row may instead declare its own `split`. `examples` are conversations shown before every task.

        Raises: ConfigError if a part is not what it should be.
        """
        if not name or "/" in name:
            raise ConfigError(f"an environment's name must be non-empty and without '/', got {name!r}")
        if isinstance(heldout, int | float) and not 0 <= heldout < 1:
            raise ConfigError(f"environment {name!r}: heldout as a share must be in [0, 1), got {heldout}")
        self.name = name
        self.description = description
        self.tools = tuple(_decorated(name, "tool", "schema", tools))
        self.rubric = Rubric(tuple(_decorated(name, "reward", "weight", rewards)))
        self.agent: Agent = ReAct() if agent is None else agent
        self.needs = _union([*self.tools, *self.rubric], resources)
        """Every resource that its tools, its rewards or itself declare, each once."""
        self.setup = setup
        self.respond = respond
        self.system = system
        self.examples = tuple(tuple(example) for example in examples)
        self.oracle = oracle
        """Solves any of its tasks; None: there is none."""
        self.hostile = hostile
        """Tricks of this domain, beside those that `sortie env check` tries on any; None: there are none."""
        self._source = tasks
        self._heldout: TaskSource | float = HELDOUT if heldout is None else heldout
        names = [tool.name for tool in self.tools]
        twice = next((tool for tool in names if names.count(tool) > 1), None)
        if twice is not None:
            raise ConfigError(f"environment {name!r} has two tools called {twice!r}; give one @tool(name=...)")

    def __repr__(self) -> str:
        return f"Env({self.name!r}, tools={[tool.name for tool in self.tools]})"

    def tasks(self, split: Split) -> TaskSet:
        """The tasks of one split. The held-out one may be empty where there is little data.

        Raises: ConfigError with one line per faulty row, or if nothing is left to train on.
        """
        return self._splits[split]

    @property
    def record(self) -> EnvironmentRecord:
        """What the task scheduler is told about it."""
        return EnvironmentRecord(
            name=self.name, description=self.description, tools=tuple(tool.name for tool in self.tools)
        )

    @cached_property
    def _splits(self) -> dict[Split, TaskSet]:
        rows = read_rows(self._source, self.name, self.rubric)
        if isinstance(self._heldout, int | float):
            return self._divided(rows, self._heldout)
        heldout = read_rows(self._heldout, self.name, self.rubric)
        own = {row.task.content_hash(): row for row in heldout}
        for row in rows:
            if row.split is not None:
                raise ConfigError(f"{row.where}: declares a split, but heldout= gives a source of its own; drop one")
            if (twin := own.get(row.task.content_hash())) is not None:
                raise ConfigError(f"{row.where} is held out as well, as {twin.where}: the splits must share no task")
        return {"train": TaskList(row.task for row in rows), "heldout": TaskList(row.task for row in heldout)}

    def _divided(self, rows: Sequence[Row], share: float) -> dict[Split, TaskSet]:
        parts: dict[Split, list[Task]] = {"train": [], "heldout": []}
        for row in rows:
            parts[row.split or split_of(row.task.content_hash(), share)].append(row.task)
        if not parts["train"]:
            raise ConfigError(
                f"environment {self.name!r}: all {len(rows)} tasks are held out; add tasks, or pass heldout=0.0"
            )
        return {split: TaskList(tasks) for split, tasks in parts.items()}


def _decorated(env: str, kind: str, mark: str, items: Iterable[Any]) -> Iterable[Any]:
    for item in items:
        if not hasattr(item, mark):
            name = getattr(item, "__name__", repr(item))
            raise ConfigError(f"environment {env!r}: {name} is not a {kind}; decorate it with @sortie.{kind}")
        yield item


def _union(parts: Iterable[Any], own: Iterable[ResourceSpec[Any]]) -> tuple[ResourceSpec[Any], ...]:
    declared = [spec for part in parts for spec in getattr(part, "needs", ())]
    return tuple({spec.key: spec for spec in [*declared, *own]}.values())
