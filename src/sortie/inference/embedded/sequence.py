"""One completion in the making, and the request it belongs to."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sortie.core.completion import Completion, CompletionEnd
from sortie.inference.client import SampleRequest
from sortie.inference.embedded.kv import Run
from sortie.inference.embedded.sampler import Draw, keyed_uniform

BASE = "base"
"""Key of the base model among policy versions."""


@dataclass(eq=False, slots=True)
class Job:
    """A request inside the engine; `deliver` is called once, with its completions or with what went wrong."""

    request: SampleRequest
    deliver: Callable[[list[Completion] | Exception], None]
    submitted_at: float = field(default_factory=time.monotonic)
    done: dict[int, Completion] = field(default_factory=dict)
    delivered: bool = False

    @property
    def version(self) -> str:
        """Key of the KV trees and adapters: the digest of the pinned policy."""
        return self.request.policy.digest if self.request.policy else BASE

    @property
    def expired(self) -> bool:
        deadline = self.request.deadline_s
        return deadline is not None and time.monotonic() - self.submitted_at > deadline

    def finish(self, outcome: list[Completion] | Exception) -> None:
        """Deliver, unless that has been done."""
        if not self.delivered:
            self.delivered = True
            self.deliver(outcome)


@dataclass(eq=False, slots=True)
class Sequence:
    """One sample of a job while it runs. `slots` holds one KV slot per token already computed or planned."""

    job: Job
    index: int
    """Which of the request's `n` samples."""
    tokens: list[int]
    slots: list[int] = field(default_factory=list)
    spare: list[int] = field(default_factory=list)
    """Slots of its open block, not used yet."""
    computed: int = 0
    """Leading tokens whose KV is there."""
    pinned: Run | None = None
    reserved_blocks: int = 0
    logprobs: list[float] = field(default_factory=list)
    twin: Sequence | None = None
    """A sequence with the same prompt that joined just before: what it computes in that step serves both."""

    @property
    def prompt_length(self) -> int:
        return len(self.job.request.prompt)

    @property
    def pending(self) -> int:
        """Tokens to compute in the next step."""
        return len(self.tokens) - self.computed

    @property
    def fresh(self) -> bool:
        """Whether it has not been through a step; its prefix may then be computed in the same step as itself."""
        return not self.logprobs

    def draw(self) -> Draw:
        """How its next token is drawn."""
        p = self.job.request.params
        position = len(self.tokens) - self.prompt_length
        uniform = keyed_uniform(p.seed, self.index, position)
        return Draw(uniform=uniform, temperature=p.temperature, top_p=p.top_p, top_k=p.top_k)

    def end(self, decode: Callable[[list[int]], str] | None) -> CompletionEnd | None:
        """Why it ends after its last token; None if it goes on."""
        p = self.job.request.params
        sampled = self.tokens[self.prompt_length :]
        if sampled[-1] in p.stop_ids:
            return "stop"
        if p.stop and decode is not None:
            # A stop string of n characters ends within the last n tokens, and at most n before them start it.
            tail = decode(sampled[-max(len(s) for s in p.stop) - 4 :])
            if any(s in tail for s in p.stop):
                return "stop"
        return "length" if len(sampled) >= p.max_tokens else None

    def completion(self, end: CompletionEnd) -> Completion:
        """What it has drawn."""
        return Completion(
            token_ids=tuple(self.tokens[self.prompt_length :]),
            logprobs=tuple(self.logprobs),
            stop_reason=end,
            version=self.job.request.policy,
        )
