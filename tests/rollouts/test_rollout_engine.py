from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from sortie.agents.agent import Agent
from sortie.agents.react import ReAct
from sortie.agents.reward import Reward, reward
from sortie.agents.rubric import Rubric
from sortie.agents.tool import Tool, tool
from sortie.context.limits import Limits
from sortie.context.run_context import Respond, RunContext
from sortie.core.completion import Completion
from sortie.core.errors import ConfigError, ModelError
from sortie.core.group import Assignment, Group
from sortie.core.messages import Message, ToolCall, assistant, user
from sortie.core.policy import PolicyVersion
from sortie.core.task import Task
from sortie.core.trajectory import StopReason, Trajectory
from sortie.inference.client import SampleRequest
from sortie.inference.scripted import ScriptedClient
from sortie.resources.engine import ResourceEngine
from sortie.resources.spec import ObjectSpec, ResourceSpec
from sortie.rollouts.engine import RETRIES, RolloutEngine
from toy import END, ToyRenderer

TASK = Task(env="toy", prompt="question", data={"target": "right"})


@reward
def correct(answer: str | None, target: str) -> bool:
    return answer == target


@dataclass
class Env:
    """The least an environment is."""

    name: str = "toy"
    tools: Sequence[Tool[Any, Any]] = ()
    rewards: Sequence[Reward[Any, Any]] = (correct,)
    agent: Agent = field(default_factory=ReAct)
    needs: Sequence[ResourceSpec[Any]] = ()
    setup: Callable[[Task, RunContext], Any] | None = None
    respond: Respond | None = None
    system: str | None = None
    examples: Sequence[Sequence[Message]] = ()

    @property
    def rubric(self) -> Rubric:
        return Rubric(self.rewards)


def engine(replies: Any, **options: Any) -> RolloutEngine:
    renderer = ToyRenderer()
    return RolloutEngine(ScriptedClient(replies, renderer=renderer), renderer, **options)


def requests(of: RolloutEngine) -> list[SampleRequest]:
    client = of._client
    assert isinstance(client, ScriptedClient)
    return client.requests


def group_of(rollouts: int) -> Assignment:
    return Assignment(id=1, key=TASK.key, rollouts=rollouts)


def always(text: str) -> Callable[[SampleRequest], str]:
    return lambda request: text


async def test_a_rollout_is_drawn_scored_and_recorded() -> None:
    trajectory = await engine(["right"]).run_one(Env(), TASK)
    assert trajectory.stop_reason is StopReason.ANSWERED
    assert (trajectory.answer, trajectory.reward, trajectory.rewards) == ("right", 1.0, {"correct": 1.0})
    assert (trajectory.error, trajectory.boundary, trajectory.attempts) == (None, None, 1)
    assert trajectory.id == f"{TASK.key}@0.0"
    assert trajectory.seconds > 0


async def test_members_come_back_in_order_under_one_pinned_policy() -> None:
    policy = PolicyVersion("a", 3, "digest")
    running = engine(always("right"))
    group = await running.run_group(Env(), TASK, group_of(4), policy=policy, visit=2)
    assert [t.member for t in group.trajectories] == [0, 1, 2, 3]
    assert group.version == policy
    assert {request.policy for request in requests(running)} == {policy}
    assert {node.version for t in group.trajectories for node in t.nodes if node.kind == "sampled"} == {policy}
    assert len({request.params.seed for request in requests(running)}) == 4
    assert {request.session for request in requests(running)} == {f"{TASK.key}@2.{i}" for i in range(4)}


async def test_equal_keys_give_equal_requests_and_other_keys_others() -> None:
    async def seeds(run_seed: int, visit: int) -> list[int]:
        running = engine(always("right"), run_seed=run_seed)
        await running.run_group(Env(), TASK, group_of(3), visit=visit)
        return sorted(request.params.seed for request in requests(running))

    assert await seeds(1, 0) == await seeds(1, 0)
    assert len({tuple(await seeds(*key)) for key in ((1, 0), (1, 1), (2, 0))}) == 3


async def test_a_failing_member_never_cancels_its_siblings() -> None:
    """Pain F13, E7: the others are drawn to their end and scored."""
    failed = asyncio.Event()

    class Fragile:
        async def run(self, task: Task, ctx: RunContext) -> None:
            if ctx.member == 1:
                failed.set()
                raise RuntimeError("bug in the agent")
            await failed.wait()
            await ReAct().run(task, ctx)

    group = await engine(always("right")).run_group(Env(agent=Fragile()), TASK, group_of(3))
    assert [t.reward for t in group.trajectories] == [1.0, None, 1.0]
    broken = group.trajectories[1]
    assert (broken.stop_reason, broken.boundary) == (StopReason.ERROR, "agent")
    assert broken.error == "agent Fragile raised RuntimeError: bug in the agent"
    assert len(group.scored) == 2


async def test_a_group_whose_members_all_failed_is_still_a_group() -> None:
    """Pain F13, A25: no fake rows stand for them."""
    group = await engine(always("x")).run_group(Env(setup=breaking_setup), TASK, group_of(3))
    assert group.rewards == []
    assert not group.informative
    assert [row for t in group.trajectories for row in t.rows()] == []


@asynccontextmanager
async def breaking_setup(task: Task, ctx: RunContext) -> AsyncIterator[None]:
    raise ValueError("no database\nat all")
    yield


async def test_an_environment_that_raises_in_set_up_is_one_clear_line_and_one_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Pain K4, F6: the first traceback is shown, the rest is counted."""
    running = engine([])
    group = await running.run_group(Env(setup=breaking_setup), TASK, group_of(3))
    for trajectory in group.trajectories:
        assert trajectory.error == "set-up of environment 'toy' raised ValueError: no database at all"
        assert (trajectory.boundary, trajectory.stop_reason) == ("env", StopReason.ERROR)
        assert (trajectory.reward, trajectory.attempts) == (None, 1)
    assert running.errors == {("toy", "env"): 3}
    (record,) = caplog.records
    assert record.exc_info is not None


async def test_a_reward_of_nan_is_named_and_the_rollout_stays_unscored() -> None:
    """Pain E9, E1."""

    @reward
    def broken() -> float:
        return float("nan")

    trajectory = await engine(["right"]).run_one(Env(rewards=[correct, broken]), TASK)
    assert trajectory.reward is None
    assert trajectory.boundary == "reward"
    assert "reward 'broken' returned nan" in str(trajectory.error)
    assert trajectory.stop_reason is StopReason.ANSWERED, "the rollout itself reached its end"


async def test_a_hanging_reward_is_bounded_and_never_a_zero() -> None:
    """Pain E8, D17."""

    @reward
    async def hangs() -> float:
        await asyncio.Event().wait()
        raise AssertionError

    trajectory = await engine(["right"], limits=Limits(score_seconds=0.01)).run_one(Env(rewards=[hangs]), TASK)
    assert trajectory.reward is None
    assert trajectory.error == "scoring did not finish within 0.01 s"


async def test_a_hanging_set_up_is_bounded() -> None:
    """Pain D17."""

    @asynccontextmanager
    async def setup(task: Task, ctx: RunContext) -> AsyncIterator[None]:
        await asyncio.Event().wait()
        yield

    trajectory = await engine([], limits=Limits(setup_seconds=0.01)).run_one(Env(setup=setup), TASK)
    assert trajectory.error == "set-up of environment 'toy' did not finish within 0.01 s"
    assert trajectory.boundary == "env"


async def test_a_rollout_out_of_time_is_truncated_scored_and_trainable() -> None:
    """Pain C19, D11, B2: the sampler hangs in the second turn; the first is kept."""

    class Slow:
        def __init__(self) -> None:
            self.aborted = False
            self.inner = ScriptedClient(["wrong"], renderer=ToyRenderer())

        async def sample(self, request: SampleRequest) -> list[Completion]:
            if not self.inner.requests:
                return await self.inner.sample(request)
            try:
                await asyncio.Event().wait()
            finally:
                self.aborted = True
            raise AssertionError

    client = Slow()
    running = RolloutEngine(client, ToyRenderer(), limits=Limits(seconds=0.05))
    trajectory = await running.run_one(Env(respond=lambda ctx, message: "again"), TASK)
    assert (trajectory.stop_reason, trajectory.truncated) == (StopReason.TIME, True)
    assert (trajectory.reward, trajectory.error) == (0.0, None)
    assert client.aborted, "cancelling the rollout aborts its request"
    (row,) = trajectory.rows()
    assert sum(row.mask) == len("wrong") + 1


async def test_an_overlong_conversation_is_truncated_not_failed() -> None:
    """Pain B1, B2."""
    limits = Limits(window=60, turn_tokens=8)
    trajectory = await engine(["wrong"], limits=limits).run_one(Env(respond=lambda c, m: "more " * 20), TASK)
    assert trajectory.stop_reason is StopReason.WINDOW
    assert (trajectory.reward, trajectory.error, trajectory.attempts) == (0.0, None, 1)
    assert trajectory.tokens_unseen > 100
    assert len(trajectory.rows()) == 1


async def test_an_end_that_was_reached_is_not_overwritten_by_a_later_limit() -> None:
    """Pain B1."""

    class Restless:
        async def run(self, task: Task, ctx: RunContext) -> None:
            await ctx.sample([user("a")])
            ctx.finish("right")
            await ctx.sample([user("x" * 5000)])

    trajectory = await engine(["ok"]).run_one(Env(agent=Restless()), TASK)
    assert (trajectory.stop_reason, trajectory.reward) == (StopReason.ANSWERED, 1.0)


async def test_an_agent_that_just_returns_is_scored() -> None:
    class Idle:
        async def run(self, task: Task, ctx: RunContext) -> None:
            await ctx.sample([user("a")])

    trajectory = await engine(["ok"]).run_one(Env(agent=Idle()), TASK)
    assert (trajectory.stop_reason, trajectory.answer, trajectory.reward) == (StopReason.AGENT_DONE, None, 0.0)


async def test_only_the_failed_rollout_is_tried_again_and_from_its_start() -> None:
    """Pain F5, D5: equal requests, one more attempt, a fresh record."""
    failing = {f"{TASK.key}@0.1"}

    def reply(request: SampleRequest) -> Any:
        if request.session in failing:
            failing.clear()
            return ModelError("engine restarted")
        return "right"

    running = engine(reply)
    group = await running.run_group(Env(), TASK, group_of(2))
    assert [t.attempts for t in group.trajectories] == [1, 2]
    assert group.rewards == [1.0, 1.0]
    assert all(t.error is None for t in group.trajectories)
    mine = [request for request in requests(running) if request.session == f"{TASK.key}@0.1"]
    assert mine[0] == mine[1]


async def test_retries_are_bounded_and_end_without_a_reward() -> None:
    """Pain F5: never a reward of 0 for a failure of the infrastructure."""
    running = engine(lambda request: ModelError("down"))
    trajectory = await running.run_one(Env(), TASK)
    assert len(requests(running)) == trajectory.attempts == RETRIES + 1
    assert (trajectory.reward, trajectory.boundary, trajectory.error) == (None, "model", "down")


async def test_errors_that_a_retry_cannot_mend_are_not_retried() -> None:
    spec = ObjectSpec(name="database", make=object)

    @tool
    async def look_up(ctx: RunContext) -> str:
        """Look up."""
        return str(ctx.lease(spec))

    running = engine([assistant("", ToolCall(name="look_up"))])
    trajectory = await running.run_one(Env(tools=[look_up]), TASK)
    assert (trajectory.attempts, trajectory.boundary) == (1, "resource")
    assert "add it to @tool(needs=...)" in str(trajectory.error)


async def test_a_usage_error_deep_inside_is_blamed_on_the_phase_it_surfaced_in() -> None:
    class Confused:
        async def run(self, task: Task, ctx: RunContext) -> None:
            raise ConfigError("no such option")

    trajectory = await engine([]).run_one(Env(agent=Confused()), TASK)
    assert (trajectory.boundary, trajectory.error) == ("agent", "agent Confused: no such option")


async def test_what_tools_rewards_and_environment_declare_is_held_for_the_whole_rollout() -> None:
    spec = ObjectSpec(name="ledger", make=list)
    resources = ResourceEngine()

    @tool(needs=spec, inline=True)
    def note(ctx: RunContext, text: str) -> str:
        """Note something."""
        ctx.lease(spec).append(text)
        return "noted"

    @reward(needs=spec)
    def noted(ctx: RunContext, state: list[str]) -> bool:
        return ctx.lease(spec) == ["opened", "x"] and state is ctx.lease(spec)

    @contextmanager
    def setup(task: Task, ctx: RunContext) -> Iterator[list[str]]:
        ctx.lease(spec).append("opened")
        yield ctx.lease(spec)

    replies = [assistant("", ToolCall(name="note", arguments={"text": "x"})), "done"]
    env = Env(tools=[note], rewards=[noted], needs=[spec], setup=setup)
    trajectory = await engine(replies, resources=resources).run_one(env, TASK)
    assert trajectory.error is None
    assert trajectory.reward == 1.0
    assert resources.usage()[spec.key].leased == 0


async def test_a_cancelled_rollout_returns_its_lease_tears_down_and_is_no_record() -> None:
    """Pain C7, C17."""
    spec = ObjectSpec(name="thing", make=object, capacity=2)
    resources, entered, finished = ResourceEngine(), asyncio.Event(), []
    torn_down = []

    @asynccontextmanager
    async def setup(task: Task, ctx: RunContext) -> AsyncIterator[None]:
        yield
        torn_down.append(ctx.member)

    class Stuck:
        async def run(self, task: Task, ctx: RunContext) -> None:
            if ctx.member == 1:
                entered.set()
            await asyncio.Event().wait()

    running = engine([], resources=resources, on_finished=lambda t, task: finished.append(t))
    env = Env(agent=Stuck(), needs=[spec], setup=setup)
    group = asyncio.create_task(running.run_group(env, TASK, group_of(2)))
    await entered.wait()
    group.cancel()
    await asyncio.wait([group])
    assert group.cancelled()
    assert sorted(torn_down) == [0, 1]
    assert resources.usage()[spec.key].leased == 0
    assert finished == []


@pytest.mark.parametrize("agent_fails", [True, False])
async def test_tear_down_runs_whatever_happened_and_its_own_error_is_on_record(agent_fails: bool) -> None:
    """Pain C7: and it takes no reward away."""

    class Sometimes:
        async def run(self, task: Task, ctx: RunContext) -> None:
            if agent_fails:
                raise KeyError("agent")
            ctx.finish("right")

    @asynccontextmanager
    async def setup(task: Task, ctx: RunContext) -> AsyncIterator[None]:
        yield
        raise OSError("cannot clean up")

    trajectory = await engine([]).run_one(Env(agent=Sometimes(), setup=setup), TASK)
    if agent_fails:
        assert (trajectory.boundary, trajectory.reward) == ("agent", None), "the first error is the one to read"
    else:
        assert trajectory.error == "tear-down of environment 'toy' raised OSError: cannot clean up"
        assert (trajectory.boundary, trajectory.reward) == ("env", 1.0)
        assert trajectory.stop_reason is StopReason.ANSWERED


async def test_a_slow_member_holds_one_slot_and_not_its_groups() -> None:
    """Pain F14: with two slots, seven members pass beside the one that hangs until they are through."""
    passed, running_now, most = asyncio.Event(), 0, 0
    through: list[int] = []

    class Agent:
        async def run(self, task: Task, ctx: RunContext) -> None:
            nonlocal running_now, most
            running_now += 1
            most = max(most, running_now)
            if ctx.member == 0:
                await passed.wait()
            await asyncio.sleep(0)
            through.append(ctx.member)
            if len(through) == 7:
                passed.set()
            running_now -= 1

    group = await engine([], max_concurrent=2).run_group(Env(agent=Agent()), TASK, group_of(8))
    assert most == 2
    assert through[-1] == 0
    assert [t.member for t in group.trajectories] == list(range(8))


async def test_every_rollout_is_reported_as_it_ends_the_failed_ones_too() -> None:
    seen: list[tuple[int, str | None]] = []

    def note(trajectory: Trajectory, task: Task) -> None:
        assert task is TASK
        seen.append((trajectory.member, trajectory.boundary))

    def reply(request: SampleRequest) -> Any:
        return ModelError("down") if str(request.session).endswith(".1") else "right"

    await engine(reply, on_finished=note).run_group(Env(), TASK, group_of(3))
    assert sorted(seen) == [(0, None), (1, "model"), (2, None)]


async def test_a_journal_that_cannot_write_ends_the_group_with_its_own_error() -> None:
    """A full disk is not a bad rollout: it must be heard."""

    def full(trajectory: Trajectory, task: Task) -> None:
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        await engine(always("right"), on_finished=full).run_group(Env(), TASK, group_of(3))


async def test_rollouts_share_what_is_shared_and_nothing_else() -> None:
    class Counting:
        async def run(self, task: Task, ctx: RunContext) -> None:
            ctx.shared["n"] = ctx.shared.get("n", 0) + 1
            ctx.scratch["n"] = ctx.scratch.get("n", 0) + 1
            ctx.finish(str(ctx.scratch["n"]))

    running = engine([])
    group = await running.run_group(Env(agent=Counting()), TASK, group_of(3))
    assert running.shared == {"n": 3}
    assert [t.answer for t in group.trajectories] == ["1", "1", "1"]


async def test_the_trainers_rows_are_the_engines_inputs_over_a_whole_rollout_with_tools() -> None:
    """Pain A1, A8, A9: tools, an unreadable call and several turns."""

    @tool(inline=True)
    def double(x: int) -> int:
        """Double."""
        return 2 * x

    replies = [
        assistant("hm", ToolCall(name="double", arguments={"x": 4})),
        [*map(ord, "<tool_call>{</tool_call>"), END],
        "right",
    ]
    running = engine(replies)
    trajectory = await running.run_one(Env(tools=[double]), TASK)
    (row,) = trajectory.rows()
    sampled = [node for node in trajectory.nodes if node.kind == "sampled"]
    for request, node in zip(requests(running), sampled, strict=True):
        end = len(request.prompt)
        assert row.token_ids[: end + len(node.token_ids)] == [*request.prompt, *node.token_ids]
        assert node.logprobs is not None
        assert row.logprobs[end : end + len(node.token_ids)] == list(node.logprobs)
    assert sum(row.mask) == sum(len(node.token_ids) for node in sampled)
    assert trajectory.reward == 1.0


async def test_evaluation_and_training_differ_in_nothing_but_the_draw() -> None:
    """Pain C5, C6: the same ids lead to the same messages, tools and rewards at any temperature."""

    @tool(inline=True)
    def double(x: int) -> int:
        """Double."""
        return 2 * x

    async def at(temperature: float) -> Group:
        replies = [
            [*map(ord, '{"name": "double", "arguments": {"x": 1}} {"name": "rm", "arguments": {}}'), END],
            "right",
        ]
        return await engine(replies).run_group(Env(tools=[double]), TASK, group_of(1), temperature=temperature)

    (train,), (evaluation,) = (await at(1.0)).trajectories, (await at(0.0)).trajectories
    assert [n.message for n in train.nodes] == [n.message for n in evaluation.nodes]
    assert [(r.name, r.output) for r in train.tools] == [(r.name, r.output) for r in evaluation.tools]
    assert train.reward == evaluation.reward


@pytest.mark.parametrize("given", [True, False])
async def test_closing_stops_the_resources_it_made_and_no_others(given: bool) -> None:
    """Pain C7."""
    closed: list[object] = []
    spec = ObjectSpec(name="thing", make=object, close=closed.append, renew=lambda thing: None)
    resources = ResourceEngine() if given else None
    async with engine(["right"], resources=resources) as running:
        assert (await running.run_one(Env(needs=[spec]), TASK)).reward == 1.0
    assert len(closed) == (0 if given else 1)
    if resources is not None:
        await resources.close()
        assert len(closed) == 1
