"""What the loop keeps of every group: what its scheduler expected of it, and what it brought."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sortie.core.group import Assignment, Group, Verdict
from sortie.scheduling import TaskScheduler
from sortie.scheduling.explain import Explaining


def expectations(scheduler: TaskScheduler, assignments: Sequence[Assignment]) -> list[dict[str, Any]]:
    """One per assignment, to be asked for between `select` and `observe`.

    `mean`, `std` (of that mean) and `variance` are in units of the reward. A scheduler that explains itself adds
    `chance` (that the rewards of a group differ), `value`, and `reason`: why the task was chosen.
    """
    keys = [assignment.key for assignment in assignments]
    expected = scheduler.predict(keys)
    columns: dict[str, Sequence[Any]] = {"mean": expected.mean, "std": expected.std, "variance": expected.variance}
    if isinstance(scheduler, Explaining):
        views = scheduler.views(keys)
        for name in ("chance", "value", "reason"):
            columns[name] = [getattr(view, name) for view in views]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def note_of(group: Group, verdict: Verdict, expected: dict[str, Any]) -> dict[str, Any]:
    """One group as JSON values; `id` is the task's key and its visit, which its rollouts' ids begin with."""
    return {
        "id": group.trajectories[0].id.rpartition(".")[0],
        "key": group.assignment.key,
        "rewards": [t.reward for t in group.trajectories],
        "verdict": verdict,
        "expected": expected,
    }
