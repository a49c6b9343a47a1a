from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from sortie.context.limits import LimitReached, Limits
from sortie.context.seeds import RolloutKey
from sortie.context.thread import Sampling, Thread
from sortie.context.window import ContextWindow
from sortie.core.completion import Completion
from sortie.core.errors import AgentError, ModelError
from sortie.core.messages import Message, user
from sortie.core.policy import PolicyVersion
from sortie.core.trajectory import StopReason, Trajectory
from sortie.inference.client import SampleRequest
from sortie.inference.scripted import ScriptedClient
from toy import END, NEWLINE, ROLES, ToyRenderer

KEY = RolloutKey(run_seed=7, task_key="toy/1", visit=0, member=0)


def says(text: str) -> list[int]:
    return [*map(ord, text), END]


class Setting:
    """One thread, its trajectory and its client."""

    def __init__(
        self,
        replies: Any,
        *,
        limits: Limits | None = None,
        renderer: ToyRenderer | None = None,
        policy: PolicyVersion | None = None,
    ) -> None:
        self.renderer = renderer or ToyRenderer()
        self.client = ScriptedClient(replies, renderer=self.renderer)
        self.trajectory = Trajectory(id=KEY.id, task_key=KEY.task_key, env="toy")
        self.window = ContextWindow(limits or Limits())
        self.sampling = Sampling(client=self.client, renderer=self.renderer, key=KEY, policy=policy)
        self.thread = self.open()

    def open(self, **names: str) -> Thread:
        return Thread(self.sampling, self.trajectory, self.window, **names)


async def test_every_prompt_is_the_previous_ids_plus_an_extension() -> None:
    """Pain A1, A2, A3, A9: nothing sampled is ever encoded again, and the boundary newline is not lost."""
    setting = Setting([says("one"), says("two"), says("three")])
    for question in ("a", "b", "c"):
        await setting.thread.sample([user(question)])
    prompts = [list(request.prompt) for request in setting.client.requests]
    for before, sampled, after, question in zip(
        prompts, [says("one"), says("two")], prompts[1:], ["b", "c"], strict=False
    ):
        extension = [NEWLINE, ROLES["user"], ord(question), END, NEWLINE, ROLES["assistant"]]
        assert after == before + sampled + extension
    whole = setting.renderer.render([*setting.thread.messages[:-1]])
    assert prompts[-1] == whole


@given(turns=st.lists(st.lists(st.integers(0, 300), max_size=12), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_the_trainers_row_is_the_engines_input_byte_for_byte(turns: list[list[int]]) -> None:
    """Pain A1, A4, A8: any sampled ids, also ones that spell no canonical text, reach the row as they were drawn."""
    setting = Setting(turns)

    async def converse() -> None:
        for i in range(len(turns)):
            await setting.thread.sample([user(str(i))])

    asyncio.run(converse())
    rows = setting.trajectory.rows()
    assert len(rows) == (1 if any(turns) else 0)
    for row in rows:
        for request, sampled in zip(setting.client.requests, turns, strict=True):
            end = len(request.prompt)
            assert row.token_ids[:end] == list(request.prompt)
            assert row.token_ids[end : end + len(sampled)] == sampled
            assert row.mask[end : end + len(sampled)] == [1] * len(sampled)
        assert row.token_ids == setting.thread.token_ids
        assert sum(row.mask) == sum(map(len, turns)) == setting.trajectory.sampled_tokens


async def test_a_prefix_break_starts_a_new_row_and_is_counted() -> None:
    """Pain A3, A5: history that a template rewrites never continues the old row."""
    setting = Setting([says("one"), says("two")], renderer=ToyRenderer(breaks_at=2))
    await setting.thread.sample([user("a")])
    await setting.thread.sample([user("b")])
    assert setting.trajectory.prefix_breaks == 1
    first, second = setting.trajectory.rows()
    assert first.token_ids == [*setting.client.requests[0].prompt, *says("one")]
    assert second.token_ids == [*setting.client.requests[1].prompt, *says("two")]
    assert sum(first.mask) == len(says("one"))
    assert sum(second.mask) == len(says("two")), "the old turn is context in the new row, not trained twice"


async def test_a_turn_without_logprobs_is_untrainable_and_counted_not_padded() -> None:
    """Pain A4."""
    blind = Completion(token_ids=says("one"), logprobs=None, stop_reason="stop")
    setting = Setting([blind, says("two")])
    await setting.thread.sample([user("a")])
    await setting.thread.sample([user("b")])
    assert setting.trajectory.untrainable_turns == 1
    (row,) = setting.trajectory.rows()
    assert sum(row.mask) == len(says("two"))
    trained = [token for token, mask in zip(row.token_ids, row.mask, strict=True) if mask]
    assert trained == says("two")


async def test_no_request_is_sent_that_would_overflow_the_window() -> None:
    """Pain B1, B2, B3, B8: a clean stop of its own name; earlier turns train; what was not shown is counted."""
    setting = Setting([says("one"), says("two")], limits=Limits(window=30, turn_tokens=8))
    await setting.thread.sample([user("a")])
    with pytest.raises(LimitReached) as caught:
        await setting.thread.sample([user("x" * 50)])
    assert caught.value.reason is StopReason.WINDOW
    assert len(setting.client.requests) == 1
    assert setting.trajectory.tokens_unseen == 50 + 5
    (row,) = setting.trajectory.rows()
    assert sum(row.mask) == len(says("one"))


@pytest.mark.parametrize(
    ("limits", "wanted", "expected"),
    [
        (Limits(turn_tokens=5), None, 5),
        (Limits(turn_tokens=5), 3, 3),
        (Limits(turn_tokens=50, rollout_tokens=7), None, 7),
        (Limits(turn_tokens=50, window=15), None, 10),
    ],
)
async def test_max_tokens_is_the_tightest_of_turn_rollout_and_window(
    limits: Limits, wanted: int | None, expected: int
) -> None:
    """Pain B3, B5: three separate limits; the prompt is 5 tokens."""
    setting = Setting([says("")], limits=limits)
    await setting.thread.sample([user("a")], wanted)
    (request,) = setting.client.requests
    assert len(request.prompt) == 5
    assert request.params.max_tokens == expected


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(turn_tokens=4), StopReason.TURN_TOKENS),
        (Limits(rollout_tokens=4), StopReason.ROLLOUT_TOKENS),
        (Limits(window=9), StopReason.WINDOW),
    ],
)
async def test_a_cut_turn_is_recorded_trains_and_names_its_limit(limits: Limits, reason: StopReason) -> None:
    """Pain B1, B3: distinct stop reasons, and the partial turn is not thrown away."""
    setting = Setting([says("long answer")], limits=limits)
    with pytest.raises(LimitReached) as caught:
        await setting.thread.sample([user("a")])
    assert caught.value.reason is reason
    assert caught.value.message == Message(role="assistant", content="long")
    assert setting.trajectory.cut_turns == 1
    assert sum(setting.trajectory.rows()[0].mask) == 4


async def test_an_agent_may_go_on_after_a_cut_turn() -> None:
    """The extension closes the open turn, with mask 0."""
    setting = Setting([says("long answer"), says("ok")], limits=Limits(turn_tokens=4))
    with pytest.raises(LimitReached):
        await setting.thread.sample([user("a")])
    await setting.thread.sample([user("shorter")])
    first, second = setting.client.requests
    assert list(second.prompt)[: len(first.prompt) + 6] == [*first.prompt, *map(ord, "long"), END, NEWLINE]
    (row,) = setting.trajectory.rows()
    assert sum(row.mask) == 4 + len(says("ok"))


async def test_the_rollout_limit_counts_all_threads_and_stops_before_sending() -> None:
    """Pain B5."""
    setting = Setting([says("abc"), says("de")], limits=Limits(rollout_tokens=7, turn_tokens=7))
    await setting.thread.sample([user("a")])
    other = setting.open(agent="helper", key="helper#0")
    await other.sample([user("b")])
    with pytest.raises(LimitReached) as caught:
        await setting.thread.sample([user("c")])
    assert caught.value.reason is StopReason.ROLLOUT_TOKENS
    assert len(setting.client.requests) == 2


async def test_resampling_abandons_the_turn_and_draws_from_the_same_prompt_with_new_randomness() -> None:
    setting = Setting([says("bad"), says("good"), says("end")])
    await setting.thread.sample([user("a")])
    message = await setting.thread.resample()
    assert message.content == "good"
    first, second = setting.client.requests
    assert list(first.prompt) == list(second.prompt)
    assert first.params.seed != second.params.seed
    await setting.thread.sample([user("b")])
    (row,) = setting.trajectory.rows()
    assert row.token_ids == [*setting.client.requests[2].prompt, *says("end")]
    assert [node.abandoned for node in setting.trajectory.nodes if node.kind == "sampled"] == [True, False, False]


async def test_a_failed_draw_leaves_the_thread_as_it_was() -> None:
    setting = Setting([says("one"), ConnectionError("gone"), says("two")])
    await setting.thread.sample([user("a")])
    with pytest.raises(ModelError, match="the sampler raised ConnectionError: gone"):
        await setting.thread.sample([user("b")])
    await setting.thread.sample([user("b")])
    _, failed, again = setting.client.requests
    assert failed == again, "equal keys give equal requests"
    assert len(setting.trajectory.rows()) == 1


async def test_a_failed_resample_keeps_the_turn_it_would_have_replaced() -> None:
    setting = Setting([says("one"), ConnectionError("gone")])
    await setting.thread.sample([user("a")])
    with pytest.raises(ModelError):
        await setting.thread.resample()
    assert not any(node.abandoned for node in setting.trajectory.nodes)


async def test_an_aborted_completion_is_a_failure_of_the_sampler() -> None:
    setting = Setting([Completion(token_ids=[65], logprobs=[-1.0], stop_reason="aborted")])
    with pytest.raises(ModelError, match="aborted"):
        await setting.thread.sample([user("a")])
    assert setting.trajectory.nodes == []


async def test_a_turn_served_by_another_version_is_refused() -> None:
    """Pain A2 and the pinning contract: a row never mixes policies."""
    pinned, other = PolicyVersion("a", 1, "x"), PolicyVersion("a", 2, "y")
    wrong = Completion(token_ids=[65], logprobs=[-1.0], stop_reason="stop", version=other)
    setting = Setting([wrong], policy=pinned)
    with pytest.raises(ModelError, match="asked for policy a@1, served by a@2"):
        await setting.thread.sample([user("a")])
    assert setting.client.requests[0].policy == pinned


async def test_two_turns_at_once_in_one_thread_are_refused() -> None:
    setting = Setting([says("one"), says("two")])
    gate = asyncio.Event()
    inner = setting.client.sample

    async def held(request: SampleRequest) -> list[Completion]:
        await gate.wait()
        return await inner(request)

    setting.client.sample = held  # type: ignore[method-assign]
    first = asyncio.create_task(setting.thread.sample([user("a")]))
    await asyncio.sleep(0)
    with pytest.raises(AgentError, match="two turns at once"):
        await setting.thread.sample([user("b")])
    gate.set()
    assert (await first).content == "one"


async def test_a_cancelled_draw_leaves_the_thread_usable() -> None:
    setting = Setting([says("one")])
    inner, entered = setting.client.sample, asyncio.Event()

    async def stuck(request: SampleRequest) -> list[Completion]:
        entered.set()
        await asyncio.Event().wait()
        raise AssertionError

    setting.client.sample = stuck  # type: ignore[method-assign]
    drawing = asyncio.create_task(setting.thread.sample([user("a")]))
    await entered.wait()
    drawing.cancel()
    await asyncio.wait([drawing])
    assert drawing.cancelled()
    setting.client.sample = inner  # type: ignore[method-assign]
    assert (await setting.thread.sample([user("a")])).content == "one"


async def test_an_empty_turn_is_legal() -> None:
    """Pain G17."""
    setting = Setting([[]])
    assert (await setting.thread.sample([user("a")])).content == ""
    assert setting.trajectory.rows() == []


async def test_turns_with_unreadable_calls_are_counted_and_their_ids_kept() -> None:
    """Pain C2, C3: a parse error never changes sampled ids or masks."""
    text = "<tool_call>{broken</tool_call>"
    setting = Setting([says(text)])
    message = await setting.thread.sample([user("a")])
    assert message.tool_calls[0].error is not None
    assert setting.trajectory.parse_errors == 1
    (row,) = setting.trajectory.rows()
    assert row.token_ids[-len(says(text)) :] == says(text)


def test_resampling_before_the_first_turn_says_so() -> None:
    with pytest.raises(AgentError, match="before the first sample"):
        asyncio.run(Setting([]).thread.resample())


def seeds(of: Callable[[Setting], Sequence[Thread]], turns: int) -> list[int]:
    setting = Setting(lambda request: says("x"))

    async def draw() -> None:
        for thread in of(setting):
            for _ in range(turns):
                await thread.sample([user("a")])

    asyncio.run(draw())
    return [request.params.seed for request in setting.client.requests]


def test_threads_and_turns_have_randomness_of_their_own() -> None:
    both = seeds(lambda s: [s.thread, s.open(agent="b", key="b#0")], 3)
    assert len(set(both)) == 6
    assert both[3:] == seeds(lambda s: [s.open(agent="b", key="b#0")], 3), "not of what was drawn elsewhere before"
