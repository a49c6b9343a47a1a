from __future__ import annotations

import math
from pathlib import Path

import pytest
from small_run import broken, config, env

from sortie.core.errors import TrainingError
from sortie.orchestrator.evaluate import evaluate, score_of, spread_over
from sortie.orchestrator.session import open_session


def test_wilsons_interval_by_hand() -> None:
    """10 of 100: centre (0.1 + 0.0192) / 1.0384, half width 1.96 / 1.0384 x sqrt(0.0009 + 0.000096)."""
    score = score_of([1.0] * 10 + [0.0] * 90)
    assert (score.mean, score.n) == (0.1, 100)
    assert score.low == pytest.approx(0.0552, abs=1e-4)
    assert score.high == pytest.approx(0.1744, abs=1e-4)


def test_graded_rewards_get_a_normal_interval() -> None:
    score = score_of([0.0, 0.5, 1.0])
    assert score.high - score.mean == pytest.approx(1.96 * 0.5 / math.sqrt(3), abs=1e-3)


def test_nothing_scored_is_not_a_zero() -> None:
    assert math.isnan(score_of([]).mean)


def test_few_tasks_are_spread_over_all_levels() -> None:
    tasks = env(tasks=60).tasks("train")
    chosen = spread_over(tasks, 6)
    assert len(chosen) == 6
    assert [list(tasks).index(t) for t in chosen] == sorted({i * len(tasks) // 6 for i in range(6)})


async def test_scores_come_per_environment_and_pooled(model: Path) -> None:
    c = config(model)
    async with open_session(str(model), engine=c.engine) as session:
        scores = await evaluate(session, [env(), env(name="other")], tasks=3, limits=c.rollouts.limits)
    assert {name: s.n for name, s in scores.items()} == {"letters": 3, "other": 3, "pooled": 6}
    assert scores["pooled"].mean == pytest.approx((scores["letters"].mean + scores["other"].mean) / 2)


async def test_an_environment_that_cannot_be_scored_is_named(model: Path) -> None:
    c = config(model)
    async with open_session(str(model), engine=c.engine) as session:
        with pytest.raises(TrainingError, match="no rollout of 'letters' could be scored"):
            await evaluate(session, [env(broken)], tasks=2, limits=c.rollouts.limits)
