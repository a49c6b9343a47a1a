"""One conversation, grown token by token.

The next prompt is always the ids already there plus newly encoded text. A turn is recorded whole or not at all: when a
limit, an error or a cancellation stops `sample` before its completion is there, the thread is as it was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sortie.context.limits import LimitReached
from sortie.context.seeds import MAIN, RolloutKey
from sortie.context.window import Cap, ContextWindow
from sortie.core.completion import Completion, SamplingParams
from sortie.core.errors import AgentError, ModelError, PrefixBreak, blame
from sortie.core.messages import Message
from sortie.core.policy import PolicyVersion
from sortie.core.tool_schema import ToolSchema
from sortie.core.trajectory import Node, NodeKind, StopReason, Trajectory
from sortie.inference.client import SampleRequest, SamplingClient
from sortie.inference.renderers.base import Renderer


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How one rollout draws its turns."""

    client: SamplingClient
    renderer: Renderer
    key: RolloutKey
    policy: PolicyVersion | None = None
    """Pinned for the whole rollout; None: the base model."""
    temperature: float = 1.0
    klass: str = "default"
    """Class of work, for admission."""


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt ready to be sent, and how it hangs on the trajectory."""

    ids: list[int]
    added: Sequence[int]
    """The part of `ids` that no node holds yet; empty when a turn is drawn anew."""
    parent: int | None
    kind: NodeKind
    messages: tuple[Message, ...]


class Thread:
    """One agent's conversation within a trajectory."""

    def __init__(
        self,
        sampling: Sampling,
        trajectory: Trajectory,
        window: ContextWindow,
        *,
        agent: str = MAIN,
        key: str = MAIN,
        tools: Sequence[ToolSchema] = (),
    ) -> None:
        self.agent = agent
        self.messages: tuple[Message, ...] = ()
        """The conversation so far, sampled turns as parsed."""
        self._sampling = sampling
        self._trajectory = trajectory
        self._window = window
        self._tools = tuple(tools)
        self._key = key
        self._session = sampling.key.id if key == MAIN else f"{sampling.key.id}/{key}"
        self._last: tuple[_Prompt, Node] | None = None
        self._draws = 0
        self._busy = False

    @property
    def token_ids(self) -> list[int]:
        """Every token of the current row so far."""
        if self._last is None:
            return []
        prompt, node = self._last
        return [*prompt.ids, *node.token_ids]

    async def sample(self, new: Sequence[Message], max_tokens: int | None = None) -> Message:
        """Add `new` messages and draw the next turn.

        Raises: LimitReached before sending, if the prompt leaves no room; or after, with the cut turn recorded, if a
        token cap came before the turn's end. ModelError if the sampler failed.
        """
        with self._turn():
            return await self._draw(self._prompt(tuple(new)), max_tokens)

    async def resample(self, max_tokens: int | None = None) -> Message:
        """Abandon the last turn, which then trains nowhere, and draw it anew from the same prompt.

        Raises: AgentError if no turn was drawn yet; LimitReached and ModelError as `sample` does.
        """
        if self._last is None:
            raise AgentError("resample() before the first sample(): there is no turn to draw anew")
        prompt, node = self._last
        with self._turn():
            again = _Prompt(prompt.ids, (), node.parent, "observation", prompt.messages)
            return await self._draw(again, max_tokens, abandons=node)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._busy:
            raise AgentError(f"two turns at once in thread {self.agent!r}; open another with ctx.thread(name)")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def _prompt(self, new: tuple[Message, ...]) -> _Prompt:
        renderer, messages = self._sampling.renderer, (*self.messages, *new)
        if self._last is None:
            ids = renderer.render(messages, self._tools)
            return _Prompt(ids, ids, None, "prompt", messages)
        before, node = self._last
        try:
            added = renderer.extend(self.messages, node.token_ids, new, self._tools)
        except PrefixBreak:
            # The earlier turns keep their own row and train there; the new row holds them as context only.
            ids = renderer.render(messages, self._tools)
            return _Prompt(ids, ids, None, "prompt", messages)
        return _Prompt([*before.ids, *node.token_ids, *added], added, node.id, "observation", messages)

    async def _draw(self, prompt: _Prompt, max_tokens: int | None, abandons: Node | None = None) -> Message:
        try:
            cap = self._window.cap(len(prompt.ids), max_tokens)
        except LimitReached:
            self._trajectory.tokens_unseen += len(prompt.added)
            raise
        started = time.monotonic()
        completion = await self._request(prompt.ids, cap.tokens)
        if abandons is not None:
            abandons.abandoned = True
        node = self._record(prompt, completion, time.monotonic() - started)
        message = node.message
        assert message is not None
        if completion.stop_reason == "length":
            self._trajectory.cut_turns += 1
            raise self._limit(cap, message)
        return message

    async def _request(self, ids: list[int], max_tokens: int) -> Completion:
        sampling = self._sampling
        params = SamplingParams(
            max_tokens=max_tokens,
            temperature=sampling.temperature,
            stop_ids=sampling.renderer.stop_ids,
            seed=sampling.key.seed(self._draws, self._key),
        )
        request = SampleRequest(
            prompt=ids, params=params, policy=sampling.policy, session=self._session, klass=sampling.klass
        )
        with blame(ModelError, "the sampler"):
            (completion,) = await sampling.client.sample(request)
        if completion.stop_reason == "aborted":
            raise ModelError(f"the sampler aborted a turn after {len(completion.token_ids)} tokens")
        served = completion.version
        if sampling.policy is not None and served is not None and served != sampling.policy:
            raise ModelError(f"asked for policy {sampling.policy}, served by {served}")
        self._draws += 1
        return completion

    def _record(self, prompt: _Prompt, completion: Completion, seconds: float) -> Node:
        trajectory, parent = self._trajectory, prompt.parent
        message = self._sampling.renderer.parse(completion.token_ids)
        trajectory.prefix_breaks += prompt.kind == "prompt" and self._last is not None
        if prompt.added:
            parent = trajectory.add(prompt.kind, prompt.added, parent, agent=self.agent).id
        node = trajectory.add(
            "sampled",
            completion.token_ids,
            parent,
            agent=self.agent,
            logprobs=completion.logprobs,
            version=completion.version,
            message=message,
            seconds=seconds,
        )
        trajectory.parse_errors += any(call.error is not None for call in message.tool_calls)
        self._window.spend(len(completion.token_ids))
        self._last = (prompt, node)
        self.messages = (*prompt.messages, message)
        return node

    def _limit(self, cap: Cap, message: Message) -> LimitReached:
        name = {StopReason.TURN_TOKENS: "turn", StopReason.ROLLOUT_TOKENS: "rollout"}.get(cap.reason, "window")
        return LimitReached(cap.reason, f"the {name}'s token limit cut a turn after {cap.tokens} tokens", message)
