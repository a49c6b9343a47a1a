"""The predictors alone: what each expects of a group before it is rolled out, against what then comes.

    python -m benchmarks.scheduling.predictor [--world base] [--seeds 20] [--quick] [--json]

All predictors watch the same run, whose groups one scheduler picks (`uniform` unless told otherwise), and learn from
every group after predicting it: each group is held out when it is predicted. First visits of a pair are told from later
ones. Figures per seed, with bootstrap 95% intervals over seeds:

* `rank`: Spearman correlation of predicted reward variance with the true p (1 - p) / checks, within an update, averaged
  over updates; 0 where a predictor ties all groups of an update.
* `log_loss`: of the group's rewards under the predicted mean, in nats per rollout (graded rewards as fractions).
* `calibration`: expected calibration error of the predicted mean against rewards, ten bins of equal counts.
* `variance_error`: mean absolute error of the predicted against the true variance.
* `inside`: share of groups whose true p lies within two predicted standard deviations of the predicted mean. The
  deviation of `constant` and `environment` is that of a mean over tasks, so theirs says nothing of a task.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.report import publish
from benchmarks.scheduling import figures
from benchmarks.scheduling.baselines import BASELINES
from benchmarks.scheduling.learner import Learner
from benchmarks.scheduling.runner import GROUPS, scheduler_of
from benchmarks.scheduling.specs import SPECS
from benchmarks.scheduling.table import flat, target
from benchmarks.scheduling.worlds import GROUP_SIZE, Floats, World, make
from sortie.scheduling import GroupResult, TaskScheduler

RIVALS = (*BASELINES, "vip")
PREDICTORS = (*RIVALS, "regression", "envsched", "oracle")
"""The oracle's log loss is the least possible."""
KINDS = ("first visits", "revisits")
FIGURES = ("rank", "log_loss", "calibration", "variance_error", "inside")


def watch(world: World, labels: Sequence[str], picker: str, steps: int) -> dict[str, Floats]:
    """One run: per predictor, a row per group of (update, visit, mean, deviation, variance, true p, true variance,
    mean reward), and the predictors' own next to the picker's."""
    learner = Learner(world)
    choose = scheduler_of(picker, learner, world.seed)
    watchers: dict[str, TaskScheduler] = {
        label: BASELINES[label](world.records) if label in BASELINES else scheduler_of(label, learner, world.seed)
        for label in labels
    }
    rows: dict[str, list[Any]] = {label: [] for label in labels}
    visits = np.zeros(len(world.records), dtype=np.int64)
    for update in range(steps):
        results = learner.roll_out(choose.select(GROUPS, GROUP_SIZE))
        choose.observe(results)
        at = np.array([learner.row[result.key] for result in results])
        p = learner.success()[at]
        rewards = np.array([np.mean(np.array(result.rewards, dtype=float)) for result in results])
        truth = (p, p * (1.0 - p) / world.checks[at], rewards)
        for label, watcher in watchers.items():
            told = watcher.predict([result.key for result in results])
            columns = (np.full(len(at), update), visits[at], told.mean, told.std, told.variance, *truth)
            rows[label].append(np.stack([np.asarray(column, dtype=float) for column in columns], axis=1))
            watcher.observe([_foreign(result) for result in results])
        np.add.at(visits, at, 1)
        learner.learn(results)
    return {label: np.concatenate(parts) for label, parts in rows.items()}


def judge(rows: Floats) -> dict[str, float]:
    """The figures of some groups, as `watch` gives them."""
    update, _, mean, std, variance, p, true_variance, reward = rows.T
    within = np.clip(mean, 1e-3, 1.0 - 1e-3)
    return {
        "rank": float(np.mean([rank(variance[update == u], true_variance[update == u]) for u in np.unique(update)])),
        "log_loss": float(-(reward * np.log(within) + (1.0 - reward) * np.log(1.0 - within)).mean()),
        "calibration": calibration(mean, reward),
        "variance_error": float(np.abs(variance - true_variance).mean()),
        "inside": float((np.abs(p - mean) <= 2.0 * std).mean()),
    }


def rank(a: Floats, b: Floats) -> float:
    """Spearman correlation, ties sharing their mean rank; 0 where one side is all ties or has fewer than 3 entries."""
    if len(a) < 3:
        return 0.0
    x, y = _ranks(a), _ranks(b)
    if not x.std() or not y.std():
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def calibration(mean: Floats, reward: Floats, bins: int = 10) -> float:
    """Mean over bins of equal counts of |mean prediction - mean reward|; equal predictions share their bin."""
    edges = np.unique(np.quantile(mean, np.linspace(0.0, 1.0, bins + 1)[1:-1]))
    of = np.searchsorted(edges, mean)
    number = np.bincount(of)
    gap = np.abs(np.bincount(of, mean) - np.bincount(of, reward))
    return float(gap.sum() / number.sum())


def judged_of(seen: Sequence[dict[str, Floats]]) -> dict[tuple[str, str], list[dict[str, float]]]:
    """(predictor, kind of visit) to one judgement per seed that had such groups, from one `watch` per seed."""
    return {
        (label, kind): [judge(rows) for one in seen if len(rows := _of_kind(one[label], kind))]
        for label in seen[0]
        for kind in KINDS
    }


def rows_of(world: str, judged: dict[tuple[str, str], list[dict[str, float]]]) -> list[dict[str, Any]]:
    """One row per predictor and kind of visit that came up."""
    return [
        {
            "world": world,
            "predictor": label,
            "groups": kind,
            "seeds": len(found),
            **{name: figures.mean(np.array([each[name] for each in found])) for name in FIGURES},
        }
        for (label, kind), found in judged.items()
        if found
    ]


def targets_of(world: str, judged: dict[tuple[str, str], list[dict[str, float]]]) -> list[dict[str, Any]]:
    """EnvSched ahead of every rival, outside the paired interval: in rank, and in log loss (lead = rival's - own)."""
    out = []
    for (label, kind), theirs in judged.items():
        ours = judged.get(("envsched", kind), [])
        if label not in RIVALS or not ours:
            continue
        for name, sign in (("rank", 1.0), ("log_loss", -1.0)):
            lead = figures.mean(np.array([sign * (a[name] - b[name]) for a, b in zip(ours, theirs, strict=True)]))
            out.append(target(f"{world}, {kind}: {name} ahead of {label}", lead, 0.0, lead.low > 0))
    return out


def main(given: Sequence[str] | None = None) -> None:
    """Watch every seed, print the rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scheduling.predictor")
    parser.add_argument("--world", default="base", help="name, several by commas, or `all`")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--predictors", default=",".join(PREDICTORS))
    parser.add_argument("--picker", default="uniform", help="the scheduler whose groups are predicted")
    parser.add_argument("--quick", action="store_true", help="4 seeds")
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
    options = parser.parse_args(given)
    rows, targets = [], []
    for world in list(SPECS) if options.world == "all" else options.world.split(","):
        seen = []
        for seed in range(min(options.seeds, 4) if options.quick else options.seeds):
            print(f"{world}: seed {seed}", file=sys.stderr)
            steps = SPECS[world].steps
            seen.append(watch(make(world, seed), options.predictors.split(","), options.picker, steps))
        judged = judged_of(seen)
        rows += rows_of(world, judged)
        targets += targets_of(world, judged)
    publish(
        "scheduling.predictor", [flat(row) for row in rows] if options.json else rows, targets, as_json=options.json
    )


def _foreign(result: GroupResult) -> GroupResult:
    """The same result as evidence from outside: the watcher gave no such assignment."""
    return replace(result, assignment=-1)


def _of_kind(rows: Floats, kind: str) -> Floats:
    return np.asarray(rows[(rows[:, 1] == 0) == (kind == "first visits")])


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2.0)[inverse], dtype=float)


if __name__ == "__main__":
    main()
