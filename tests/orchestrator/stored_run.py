"""Run folders written by hand, for what reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sortie.core.run_folder import RunFolder
from sortie.core.task import Task
from sortie.core.trajectory import StopReason, Trajectory


def rollout(reward: float | None = 1.0, number: int = 0, member: int = 0, **fields: Any) -> Trajectory:
    """One turn of two tokens; `answer` is "yes" unless told otherwise."""
    settings = {"answer": "yes", "stop_reason": StopReason.ANSWERED, "seconds": 1.0, **fields}
    t = Trajectory(
        id=f"{task(number).key}@0.{member}", task_key=task(number).key, env="shop", member=member, **settings
    )
    t.reward = reward
    t.rewards = {"correct": reward}
    t.add("prompt", [7, 8], None)
    t.add("sampled", [1, 2], 0, logprobs=[-0.5, -1.5], seconds=0.25)
    return t


def task(number: int) -> Task:
    return Task(env="shop", prompt=f"buy {number}", data={"target": "yes"}, id=str(number))


def stored(
    runs: Path, groups: Sequence[Sequence[Trajectory]], name: str = "r", config: str = 'model = "./tiny"\nsteps = 2\n'
) -> RunFolder:
    """A run of one step with these groups."""
    with RunFolder.create(runs, name) as folder:
        folder.write_config(config)
        for number, members in enumerate(groups):
            for member in members:
                folder.add_rollout(member, task(number), 1)
        folder.append_metrics({"step": 1, "rollout_s": 6.0, "train_s": 3.0, "tokens_per_s": 50.0})
    return RunFolder.open(name, runs)
