from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from sortie.agents.reward import Reward, reward
from sortie.agents.rubric import Rubric
from sortie.context.run_context import RunContext
from sortie.core.errors import ConfigError, ModelError, RewardError
from sortie.core.task import Task
from sortie.core.trajectory import Trajectory
from toy import toy_context


async def score(
    *rewards: Reward[Any, Any], ctx: RunContext | None = None
) -> tuple[float | None, dict[str, float | None]]:
    ctx = ctx or toy_context()
    return await Rubric(rewards).score(ctx.task, ctx.trajectory, ctx)


def constant(name: str, value: Any, weight: float = 1.0) -> Reward[Any, Any]:
    return reward(name=name, weight=weight, inline=True)(lambda: value)


async def test_arguments_are_injected_by_name() -> None:
    """Pain C6: a reward gets the environment's state and the task's columns."""
    seen = {}

    @reward
    def judge(
        task: Task,
        trajectory: Trajectory,
        state: dict[str, int],
        ctx: RunContext,
        answer: str,
        target: str,
        tolerance: float = 0.5,
    ) -> bool:
        seen.update(task=task, trajectory=trajectory, state=state, ctx=ctx, tolerance=tolerance)
        return answer == target

    ctx = toy_context(data={"target": "42"}, state={"stock": 3})
    ctx.finish("42")
    assert await score(judge, ctx=ctx) == (1.0, {"judge": 1.0})
    assert seen == {"task": ctx.task, "trajectory": ctx.trajectory, "state": {"stock": 3}, "ctx": ctx, "tolerance": 0.5}


async def test_a_missing_argument_names_what_there_is() -> None:
    @reward
    def judge(target: str) -> float:
        return 1.0

    with pytest.raises(RewardError, match="asks for 'target'; it can have: task, trajectory, state, ctx, answer, goal"):
        await score(judge, ctx=toy_context(data={"goal": 1}))


async def test_the_total_is_the_weighted_sum_of_what_was_scored() -> None:
    """Pain E10: None is kept out, not counted as 0."""
    rewards = [
        constant("a", True),
        constant("b", 0.5, weight=-2.0),
        constant("c", None, weight=9.0),
        constant("d", 7, weight=0.0),
    ]
    assert await score(*rewards) == (0.0, {"a": 1.0, "b": 0.5, "c": None, "d": 7.0})
    assert await score(constant("c", None)) == (None, {"c": None})
    assert await score() == (None, {})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1.0", [1], {"a": 1}, np.float32("nan")])
async def test_a_reward_that_is_no_finite_number_is_refused_and_named(value: Any) -> None:
    """Pain E9."""
    with pytest.raises(RewardError, match=r"reward 'bad' returned .*; it must return a finite number"):
        await score(constant("good", 1.0), constant("bad", value))


async def test_numbers_of_numpy_are_numbers() -> None:
    assert await score(constant("a", np.float32(0.5))) == (0.5, {"a": 0.5})


async def test_a_reward_that_raises_is_an_error_never_a_zero() -> None:
    """Pain E1."""

    @reward
    def divides() -> float:
        return 1 / 0

    with pytest.raises(RewardError, match="reward 'divides' raised ZeroDivisionError: division by zero"):
        await score(divides)


async def test_a_judge_whose_model_fails_keeps_that_boundary() -> None:
    """Pain E7: an infrastructure failure stays retryable."""

    @reward
    async def judge() -> float:
        raise ModelError("no answer")

    with pytest.raises(ModelError):
        await score(judge)


async def test_rewards_of_one_rubric_run_concurrently() -> None:
    """Each waits for the other; one after the other they would wait for ever."""
    meeting = asyncio.Barrier(2)

    async def meets() -> float:
        await meeting.wait()
        return 1.0

    total, _ = await asyncio.wait_for(score(reward(name="a")(meets), reward(name="b")(meets)), 10)
    assert total == 2.0


async def test_a_failing_reward_leaves_none_running() -> None:
    done = asyncio.Event()

    @reward
    async def fails() -> float:
        raise ValueError("x")

    @reward
    async def works() -> float:
        await asyncio.sleep(0)
        done.set()
        return 1.0

    with pytest.raises(RewardError, match="fails"):
        await score(fails, works)
    assert done.is_set()


def test_ill_formed_rewards_are_refused_at_definition() -> None:
    def variadic(*args: int) -> float:
        return 0.0

    with pytest.raises(ConfigError, match="'args' must be an ordinary named one"):
        reward(variadic)
    with pytest.raises(ConfigError, match="weight must be finite"):
        reward(weight=float("nan"))(lambda: 1.0)
    with pytest.raises(ConfigError, match="two rewards are called 'a'"):
        Rubric([constant("a", 1), constant("a", 2)])


def test_a_reward_is_still_the_plain_function() -> None:
    @reward(weight=2.0)
    def double(x: int) -> int:
        return 2 * x

    assert double(3) == 6
    assert (double.name, double.weight) == ("double", 2.0)
