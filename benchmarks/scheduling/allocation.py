"""Whether groups of unequal size help, and whether that hangs on how the learner counts rollouts.

    python -m benchmarks.scheduling.allocation [--world base,hints] [--stretch 1,2,4] [--seeds 10] [--json]

Learners, by what a step's groups of rewards r add to skill:

* `summed`: rate / 8 x sum (r - mean)^2 of each group, as in every published figure. The expectation is linear in n - 1.
* `averaged`: the same over the number of rollouts in informative groups, times the rollouts asked for: how
  `sortie.training.batching` weighs a batch. Rollouts in groups that hardly differ dilute the others.
* `saturating`: each group's sum S counts as S / (1 + S / 2), 2 being the most that a group of 8 can have: a stand-in
  for what rollouts of one task have in common. Ours, and harsher on large groups than anything known.

Figures are those of `benchmarks.scheduling.figures`, `area_gained` and `final_gained` over stretch 1 on the same seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.report import publish
from benchmarks.scheduling import figures
from benchmarks.scheduling.figures import Axis
from benchmarks.scheduling.learner import Learner
from benchmarks.scheduling.runner import GROUPS, Curve, scheduler_of
from benchmarks.scheduling.specs import SPECS
from benchmarks.scheduling.table import budget_of, flat
from benchmarks.scheduling.worlds import GROUP_SIZE, World, make
from sortie.scheduling import GroupResult


class Averaged(Learner):
    """Steps of one size, however many groups are informative."""

    def learn(self, kept: Sequence[GroupResult]) -> None:
        """One update; see the module."""
        trained = sum(len(result.rewards) for result in kept if len(set(result.rewards)) > 1)
        _learn(self, kept, lambda squares: squares * GROUPS * GROUP_SIZE / trained)


class Saturating(Learner):
    """Less from every further rollout of a group."""

    def learn(self, kept: Sequence[GroupResult]) -> None:
        """One update; see the module."""
        _learn(self, kept, lambda squares: squares / (1.0 + squares / 2.0))


LEARNERS: Mapping[str, type[Learner]] = {"summed": Learner, "averaged": Averaged, "saturating": Saturating}


def _learn(learner: Learner, kept: Sequence[GroupResult], counts: Callable[[float], float]) -> None:
    """`Learner.learn`, but that a group's sum of squared advantages `counts` otherwise."""
    world, spec = learner.world, learner.world.spec
    for result in kept:
        rewards, row = np.array(result.rewards, dtype=float), learner.row[result.key]
        squares = float(((rewards - rewards.mean()) ** 2).sum())
        if squares > 0.0:
            growth = spec.rate * counts(squares) / GROUP_SIZE
            learner.skill["environment"][world.domain[row]] += growth
            learner.skill["pattern"][world.pattern[row]] += growth
    for skill in learner.skill.values():
        skill *= spec.retention
    learner.version += 1


def run(world: World, label: str, kind: str, steps: int) -> Curve:
    """A scheduler that never sends groups back, with the budget of `steps` uniform updates in rollouts and in cost."""
    learner = LEARNERS[kind](world)
    scheduler = scheduler_of(label, learner, world.seed)
    budget = budget_of(steps, "rollouts")
    curve = Curve([0], [0.0], [learner.score()], [0.0])
    while min(curve.rollouts[-1], curve.cost[-1]) < budget - 1e-6:
        assignments = scheduler.select(GROUPS, GROUP_SIZE)
        results = learner.roll_out(assignments)
        scheduler.observe(results)
        learner.learn(results)
        costs = [float(world.cost[learner.row[a.key]]) * a.rollouts for a in assignments]
        curve.rollouts.append(curve.rollouts[-1] + sum(a.rollouts for a in assignments))
        curve.cost.append(curve.cost[-1] + sum(costs))
        curve.score.append(learner.score())
        curve.informative.append(float(np.mean([len(set(result.rewards)) > 1 for result in results])))
    return curve


def compare(name: str, kind: str, stretches: Sequence[float], seeds: Sequence[int], steps: int) -> list[dict[str, Any]]:
    """A row per stretch."""
    labels = {stretch: f"envsched:stretch={stretch:g}" for stretch in stretches}
    axis: Axis = "rollouts" if SPECS[name].dearest == 1.0 else "cost"
    runs = {
        label: {seed: run(make(name, seed), label, kind, steps) for seed in seeds}
        for label in ("uniform", *labels.values())
    }
    read = {
        label: figures.readings(curves, runs["uniform"], axis, budget_of(steps, axis)) for label, curves in runs.items()
    }
    base = read[labels[stretches[0]]]
    return [
        {
            "world": name,
            "learner": kind,
            "stretch": stretch,
            "matched": axis,
            "seeds": len(seeds),
            "steps": figures.mean(read[label].steps),
            "area": figures.mean(read[label].area),
            "final": figures.mean(read[label].final),
            "area_gained": figures.mean(read[label].area - base.area),
            "final_gained": figures.mean(read[label].final - base.final),
        }
        for stretch, label in labels.items()
    ]


def main(given: Sequence[str] | None = None) -> None:
    """Print a table, or one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scheduling.allocation")
    parser.add_argument("--world", default="base,hints,noise,dense", help="names, by commas")
    parser.add_argument("--learner", default=",".join(LEARNERS), help="names, by commas")
    parser.add_argument("--stretch", default="1,2,4", help="by commas; the first is what the others are compared with")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, help="uniform updates in the budget; the world's own if not given")
    parser.add_argument("--quick", action="store_true", help="2 seeds of base")
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
    options = parser.parse_args(given)
    worlds, kinds = options.world.split(","), options.learner.split(",")
    for name, known in [*((world, SPECS) for world in worlds), *((kind, LEARNERS) for kind in kinds)]:
        if name not in known:
            parser.error(f"no {name!r}; choose from {', '.join(known)}")
    if options.quick:
        worlds, options.seeds = worlds[:1], min(options.seeds, 2)
    stretches = [float(part) for part in options.stretch.split(",")]
    rows = [
        row
        for name in worlds
        for kind in kinds
        for row in compare(name, kind, stretches, range(options.seeds), options.steps or SPECS[name].steps)
    ]
    publish("scheduling.allocation", [flat(row) for row in rows] if options.json else rows, [], as_json=options.json)


if __name__ == "__main__":
    main()
