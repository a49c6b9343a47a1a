"""Tools and rewards that run code in their rollout's sandbox."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from sandboxes import SMALL

import sortie
from sortie.core.messages import ToolCall, assistant
from sortie.resources.engine import ResourceEngine
from sortie.rollouts.engine import RolloutEngine
from toy import ToyRenderer

SPEC = replace(SMALL, isolation="auto", keep_state=True)


@sortie.tool(needs=SPEC)
async def run_python(ctx: sortie.RunContext, code: str) -> str:
    """Run `code` in this rollout's sandbox and return what it printed."""
    return (await ctx.lease(sortie.SandboxSpec).python(code, timeout_s=10)).output


@sortie.tool(needs=SPEC, timeout_s=0.3)
async def run_shell(ctx: sortie.RunContext, command: str) -> str:
    """Run `command` in this rollout's sandbox and return what it printed."""
    return (await ctx.lease(sortie.SandboxSpec).run(["sh", "-c", command])).output


@sortie.reward(needs=SPEC)
async def passes(ctx: sortie.RunContext, answer: str) -> float:
    """The answer is a program that must end by itself."""
    result = await ctx.lease(sortie.SandboxSpec).run(["python", "-c", answer], timeout_s=1.0)
    if result.killed_reason is not None:
        raise TimeoutError(f"the check was ended: {result.killed_reason}")
    return float(result.exit_code == 0)


def call(name: str, **arguments: str) -> sortie.Message:
    return assistant("", ToolCall(id="1", name=name, arguments=arguments))


def observed(trajectory: sortie.Trajectory) -> str:
    """Everything the model was shown."""
    return "".join(chr(t) for node in trajectory.nodes if node.kind == "observation" for t in node.token_ids)


async def rollout(replies: list[object], resources: ResourceEngine) -> sortie.Trajectory:
    env = sortie.Env("code", tasks=[{"prompt": "go"}], tools=[run_python, run_shell], rewards=[passes], heldout=0.0)
    renderer = ToyRenderer()
    client = sortie.ScriptedClient(replies, renderer=renderer)
    limits = sortie.Limits(turn_tokens=400, rollout_tokens=2000, window=8000)
    engine = RolloutEngine(client, renderer, resources, limits)
    return await engine.run_one(env, next(iter(env.tasks("train"))))


async def test_state_is_kept_within_a_rollout_and_gone_in_the_next(some_kind: str) -> None:
    async with ResourceEngine() as resources:
        first = await rollout(
            [call("run_python", code="x = 20"), call("run_python", code="print(x + 1)"), "exit()"], resources
        )
        second = await rollout([call("run_python", code="print(x)"), "exit(1)"], resources)
    assert first.reward == 1.0
    assert second.reward == 0.0
    assert "21" in observed(first)
    assert "NameError" in observed(second)


async def test_a_tool_that_hangs_is_an_observation_and_its_processes_are_gone(some_kind: str) -> None:
    """Pain C18, D1: the time limit of a tool is on, and ends the whole tree."""
    async with ResourceEngine() as resources:
        trajectory = await rollout(
            [call("run_shell", command="trap '' TERM; sleep 600 & sleep 600"), "exit()"], resources
        )
        pools = resources.usage()
    assert trajectory.reward == 1.0
    assert trajectory.attempts == 1
    assert "run_shell did not finish within 0.3 s" in observed(trajectory)
    assert trajectory.stop_reason is sortie.StopReason.ANSWERED
    assert sum(pool.failures for pool in pools.values()) == 0


async def test_a_check_that_hangs_is_ended_and_is_an_error_not_a_zero(some_kind: str) -> None:
    """Pain E1, E2: the check runs in a process, ended by its kill; the time-out reaches the record."""
    async with ResourceEngine() as resources:
        trajectory = await rollout(["while True: pass"], resources)
    assert trajectory.reward is None
    assert trajectory.boundary == "reward"
    assert "the check was ended: time: 1 s" in (trajectory.error or "")


async def test_a_check_outside_the_main_thread_is_timed_just_the_same(some_kind: str) -> None:
    """Pain E1: no alarm signals, which only a main thread may use."""

    def in_a_thread() -> sortie.Trajectory:
        async def check() -> sortie.Trajectory:
            async with ResourceEngine() as resources:
                return await rollout(["while True: pass"], resources)

        return asyncio.run(check())

    trajectory = await asyncio.to_thread(in_a_thread)
    assert trajectory.boundary == "reward"
    assert "time: 1 s" in (trajectory.error or "")
