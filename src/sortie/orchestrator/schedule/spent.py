"""What a run spent its rollouts on, group by group, read off its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sortie.core.run_folder import RunFolder
from sortie.core.trajectory import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the scheduler expected of a group when it chose it; rewards in their own units."""

    mean: float
    std: float
    """Of the mean: how unsure it was."""
    variance: float
    """Of the reward between rollouts."""
    chance: float | None = None
    """That the rewards differ; None where the scheduler does not say."""
    value: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentGroup:
    """One group of a finished step."""

    id: str
    """Task key and visit."""
    key: str
    environment: str
    step: int
    rollouts: tuple[Trajectory, ...]
    """As `RunFolder.outlines` gives them: with numbers of tokens, without the tokens."""
    replaced: bool
    """Sent back by the scheduler; False also where the run kept no record of that."""
    expected: Expected | None
    """None: the run kept no record of it."""

    @property
    def rewards(self) -> list[float]:
        """Of the scored members."""
        return [t.reward for t in self.rollouts if t.reward is not None]

    @property
    def informative(self) -> bool:
        """At least two scored members differ."""
        return len(set(self.rewards)) > 1

    @property
    def success(self) -> float | None:
        """Mean reward; None if nothing was scored."""
        return mean(self.rewards)

    @property
    def variance(self) -> float | None:
        """Unbiased variance of the rewards; None of fewer than two."""
        rewards = self.rewards
        if len(rewards) < 2:
            return None
        m = sum(rewards) / len(rewards)
        return sum((reward - m) ** 2 for reward in rewards) / (len(rewards) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """All groups of the finished steps, and what is left over."""

    groups: tuple[SpentGroup, ...]
    steps: tuple[int, ...]
    """Finished steps."""
    unfinished: int
    """Rollouts of a step that was cut short, or goes on: not counted anywhere else."""
    recorded: bool
    """Whether the run kept what was expected of its groups."""


def spending(folder: RunFolder) -> Spending:
    """Read the run's training groups; a step that was done again counts once, as it came out last."""
    steps = tuple(sorted(int(line["step"]) for line in folder.metrics()))
    records = {(r.step, r.trajectory.id): r for r in folder.outlines() if r.phase == "train"}
    members: dict[tuple[int, str], list[Trajectory]] = {}
    for (step, name), record in records.items():
        members.setdefault((step, name.rpartition(".")[0]), []).append(record.trajectory)
    notes = {(step, note["id"]): note for step, noted in folder.groups().items() for note in noted}
    done = set(steps)
    groups = [
        _group(step, name, rollouts, notes.get((step, name)))
        for (step, name), rollouts in members.items()
        if step in done
    ]
    groups.sort(key=lambda group: group.step)
    return Spending(
        groups=tuple(groups),
        steps=steps,
        unfinished=sum(step not in done for step, _ in records),
        recorded=any(group.expected for group in groups),
    )


def _group(step: int, name: str, rollouts: Sequence[Trajectory], note: Mapping[str, Any] | None) -> SpentGroup:
    first = rollouts[0]
    return SpentGroup(
        id=name,
        key=first.task_key,
        environment=first.env,
        step=step,
        rollouts=tuple(sorted(rollouts, key=lambda t: t.member)),
        replaced=note is not None and note["verdict"] == "refill",
        expected=None if note is None else Expected(**note["expected"]),
    )


def mean(values: Iterable[float | None]) -> float | None:
    """Of those that are numbers; None if there are none."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None
