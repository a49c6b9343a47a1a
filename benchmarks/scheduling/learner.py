"""A learner without an LLM: success by skill against difficulty, skill by the reward variance it was trained on.

    logit p = (skill[domain] - effect[domain]) + (skill[pattern] - effect[pattern]) - own

A group of n rewards adds rate x n/8 x (mean square of its rewards around their mean) to both skills of its pair: the
size of a policy-gradient step with a group-mean baseline and a loss summed over rollouts. Rewards are keyed by (seed,
pair, visit, member), so that schedulers which roll out the same pair meet the same luck.
A domain is one environment, or several.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.scheduling.surface import blurred
from benchmarks.scheduling.worlds import GROUP_SIZE, Floats, World, logits, sigmoid
from sortie.scheduling import Assignment, GroupResult


class Learner:
    """One policy being trained in one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.version = 0
        """Updates so far."""
        self.skill = {"environment": np.zeros(len(world.environment_effect)), "pattern": np.zeros(world.spec.patterns)}
        self.effect = {"environment": world.environment_effect.copy(), "pattern": world.pattern_effect.copy()}
        self.row = {record.key: i for i, record in enumerate(world.records)}
        self._visits = np.zeros(len(world.records), dtype=np.int64)

    def success(self) -> Floats:
        """True expected reward of every pair."""
        world, margin = self.world, {name: self.skill[name] - self.effect[name] for name in self.skill}
        return sigmoid(
            logits(world.spec, margin["environment"][world.domain], margin["pattern"][world.pattern], world.own)
        )

    def score(self) -> float:
        """Mean success over all pairs."""
        return float(self.success().mean())

    def roll_out(self, assignments: Sequence[Assignment]) -> list[GroupResult]:
        """Act with the present policy: rewards and features of each assignment."""
        p = self.success()
        return [self._group(assignment, float(p[self.row[assignment.key]])) for assignment in assignments]

    def _group(self, assignment: Assignment, p: float) -> GroupResult:
        world, row = self.world, self.row[assignment.key]
        visit = int(self._visits[row])
        self._visits[row] += 1
        checks = int(world.checks[row])
        passed = world.stream("rewards", row, visit).random((assignment.rollouts, checks)) < p
        profile = world.profiles[int(world.pattern[row])]
        return GroupResult(
            key=assignment.key,
            assignment=assignment.id,
            rewards=tuple(passed.mean(axis=1).tolist()),
            features=blurred(profile, world.spec.blur, world.stream("features", row, visit)),
            version=self.version,
        )

    def learn(self, kept: Sequence[GroupResult]) -> None:
        """One update on the groups that were kept."""
        world, spec = self.world, self.world.spec
        for result in kept:
            rewards, row = np.array(result.rewards, dtype=float), self.row[result.key]
            growth = spec.rate * float(((rewards - rewards.mean()) ** 2).sum()) / GROUP_SIZE
            self.skill["environment"][world.domain[row]] += growth
            self.skill["pattern"][world.pattern[row]] += growth
        for skill in self.skill.values():
            skill *= spec.retention
        self.version += 1

    def drift(self) -> None:
        """Half of the environments and patterns, by the seed, take new effects, and the skill in them is lost."""
        spec = self.world.spec
        for name, effect in self.effect.items():
            rng = self.world.stream(f"drift {name}")
            moved = rng.permutation(len(effect))[: len(effect) // 2]
            effect[moved] = spec.scale * spec.effect_sd * rng.normal(size=len(moved))
            self.skill[name][moved] = 0.0

    def gain(self) -> Floats:
        """Growth of the score expected from one group of 8 per pair, to first order.

        A group grows both skills by rate x p (1 - p) / checks x 7/8; a logit more on a skill raises the score by the
        mean of p (1 - p) over the pairs that use it.
        """
        world, p = self.world, self.success()
        slope = p * (1.0 - p)
        if world.spec.combine == "weaker":
            a = (self.skill["environment"] - self.effect["environment"])[world.domain]
            b = (self.skill["pattern"] - self.effect["pattern"])[world.pattern]
            by_environment, by_pattern = 2.0 * slope * (a < b), 2.0 * slope * (b <= a)
        else:
            by_environment = by_pattern = slope
        reach = (
            np.bincount(world.domain, by_environment)[world.domain]
            + np.bincount(world.pattern, by_pattern)[world.pattern]
        )
        growth = world.spec.rate * (GROUP_SIZE - 1) / GROUP_SIZE * slope / world.checks
        return np.asarray(growth * reach / len(p))
