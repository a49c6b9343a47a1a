"""The tasks of a run, as the scheduler sees them and as the rollouts need them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sortie.core.errors import ConfigError
from sortie.core.group import Assignment, EnvironmentRecord, Group, GroupResult, TaskRecord
from sortie.core.task import Task
from sortie.envs import Env
from sortie.scheduling.pattern import group_features


class TaskBook:
    """Finds a task's environment by key, and counts how often each task was visited."""

    def __init__(self, envs: Sequence[Env]) -> None:
        """Raises: ConfigError if an environment has no training task, or two share a name."""
        self.envs = {env.name: env for env in envs}
        if len(self.envs) < len(envs):
            raise ConfigError(f"two environments share a name: {', '.join(env.name for env in envs)}")
        self.tasks: dict[str, Task] = {}
        self.visits: Counter[str] = Counter()
        for env in envs:
            tasks = env.tasks("train")
            if not len(tasks):
                raise ConfigError(f"environment {env.name!r} has no training task")
            self.tasks.update((task.key, task) for task in tasks)

    def records(self) -> list[TaskRecord]:
        """Every training task; its level, where it has one, is a hint at its pattern."""
        return [
            TaskRecord(
                key=key,
                environment=task.env,
                text=task.prompt if isinstance(task.prompt, str) else task.prompt[-1].content,
                features=None if task.level is None else {"level": float(task.level)},
            )
            for key, task in self.tasks.items()
        ]

    def environments(self) -> list[EnvironmentRecord]:
        """Every environment."""
        return [env.record for env in self.envs.values()]

    def visit(self, assignment: Assignment) -> tuple[Env, Task, int]:
        """What to roll out for an assignment, and how often its task was rolled out before."""
        task = self.tasks[assignment.key]
        visit = self.visits[assignment.key]
        self.visits[assignment.key] += 1
        return self.envs[task.env], task, visit


def result_of(group: Group) -> GroupResult:
    """What the scheduler learns of a group; abandoned if none of it could be scored."""
    return GroupResult(
        key=group.assignment.key,
        assignment=group.assignment.id,
        rewards=tuple(t.reward for t in group.trajectories),
        features=group_features(group.trajectories) if group.scored else None,
        version=group.version.number if group.version else 0,
        outcome="done" if group.scored else "abandoned",
    )
