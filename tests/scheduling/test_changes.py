"""A sudden change is noticed from few groups, and chance alone is not taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from sortie.scheduling import GroupResult, TaskRecord, build
from sortie.scheduling.changes import log_likelihood


def run(after: float, *, steps: int = 60, change_at: int = 30, seed: int = 0) -> tuple[list[float], float]:
    """Two environments whose tasks succeed at 0.8; environment a changes to `after`. Returns, per step, the mean
    predicted for it, and the number of changes noticed."""
    rng = np.random.default_rng(seed)
    records = [TaskRecord(key=f"{e}/{i}", environment=e) for e in "ab" for i in range(200)]
    scheduler = build("envsched", records, seed=seed)
    predicted = []
    for step in range(steps):
        results = []
        for e in "ab":
            p = after if e == "a" and step >= change_at else 0.8
            rewards = tuple((rng.random(8) < p).astype(float).tolist())
            results.append(GroupResult(key=f"{e}/{step}", assignment=-1, rewards=rewards, version=step))
        scheduler.observe(results)
        predicted.append(scheduler.predict(["a/199"]).mean[0])
    return predicted, scheduler.metrics()["changes"]


def test_an_environment_that_suddenly_fails_is_believed_after_few_groups() -> None:
    predicted, changes = run(after=0.05)
    assert changes >= 1
    assert predicted[29] > 0.7
    assert predicted[35] < 0.25


@pytest.mark.parametrize("seed", range(3))
def test_without_a_change_none_is_noticed(seed: int) -> None:
    assert run(after=0.8, seed=seed)[1] == 0


def test_the_likelihood_of_a_known_success() -> None:
    """p = 1/4, one of three: log(1/4 x 9/16), without the binomial coefficient."""
    got = log_likelihood(np.array([-np.log(3)]), np.array([1e-12]), np.array([1.0]), np.array([3.0]))
    assert got[0] == pytest.approx(np.log(9 / 64))
