"""A SamplingClient that says what it is told: for tests, and for trying an environment out without a model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from sortie.core.completion import Completion
from sortie.core.errors import ModelError
from sortie.core.messages import Message
from sortie.inference.client import SampleRequest
from sortie.inference.renderers.base import Renderer

Reply = str | Message | Completion | Sequence[int] | BaseException
"""What to say: text or a message (a renderer spells it), ids, a whole completion, or an error to raise."""


class ScriptedClient:
    """Replays replies in order, or asks a function of the request for each.

    Logprobs are made up, but fixed by the ids: between -1 and 0. `requests` keeps every request seen, in order.
    """

    def __init__(
        self, replies: Iterable[Reply] | Callable[[SampleRequest], Reply], *, renderer: Renderer | None = None
    ) -> None:
        """`renderer` is needed to say text or messages."""
        self.requests: list[SampleRequest] = []
        self._renderer = renderer
        self._policy: Callable[[SampleRequest], Reply] = replies if callable(replies) else _in_order(iter(replies))

    @classmethod
    def from_texts(cls, renderer: Renderer, texts: Iterable[str | Message]) -> ScriptedClient:
        """Says each text or message as one whole turn, in order."""
        return cls(texts, renderer=renderer)

    async def sample(self, request: SampleRequest) -> list[Completion]:
        """One reply per completion asked for.

        Raises: ModelError when the script has run out; whatever error the script holds.
        """
        self.requests.append(request)
        return [self._complete(self._policy(request), request) for _ in range(request.n)]

    def _complete(self, reply: Reply, request: SampleRequest) -> Completion:
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, Completion):
            return reply
        ids = self._ids(reply)
        cut = ids[: request.params.max_tokens]
        ended = len(cut) == len(ids)
        return Completion(
            token_ids=cut,
            logprobs=[_logprob(token) for token in cut],
            stop_reason="stop" if ended else "length",
            version=request.policy,
        )

    def _ids(self, reply: str | Message | Sequence[int]) -> list[int]:
        if not isinstance(reply, str | Message):
            return list(reply)
        if self._renderer is None:
            raise ModelError("this ScriptedClient was given text but no renderer to spell it: pass renderer=...")
        if isinstance(reply, Message):
            return self._renderer.spell(reply)
        return [*self._renderer.encode(reply), *self._renderer.stop_ids[:1]]


def _in_order(replies: Iterator[Reply]) -> Callable[[SampleRequest], Reply]:
    said = 0

    def next_reply(request: SampleRequest) -> Reply:
        nonlocal said
        try:
            reply = next(replies)
        except StopIteration:
            raise ModelError(f"the script has run out after {said} replies: give ScriptedClient more") from None
        said += 1
        return reply

    return next_reply


def _logprob(token: int) -> float:
    return -int.from_bytes(hashlib.blake2b(str(token).encode(), digest_size=2).digest(), "big") / 65536
