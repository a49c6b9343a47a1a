"""What a sampler is asked for and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sortie.core.policy import PolicyVersion

CompletionEnd = Literal["stop", "length", "aborted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How to draw tokens. `top_p < 1` and `top_k > 0` are refused for training: their logprobs are of another law."""

    max_tokens: int
    """Most tokens to draw, the stop token included."""
    temperature: float = 1.0
    """Divides the logits; 0 is greedy and allowed for evaluation only."""
    stop_ids: tuple[int, ...] = ()
    """Ending tokens; the one drawn is kept as the last token."""
    stop: tuple[str, ...] = ()
    """Ending strings; the tokens that complete one are kept."""
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    """Key of the randomness: one uniform per (seed, sample index, position). Callers hash run, task, visit, member and
    turn into it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """Tokens drawn for one prompt. Text is derived from these, never the source."""

    token_ids: Sequence[int]
    logprobs: Sequence[float] | None
    """One per token, of the distribution the trainer sees (temperature applied, nothing truncated); None: not known,
    so the turn is untrainable."""
    stop_reason: CompletionEnd
    version: PolicyVersion | None = None
    """The policy that drew them; None for a base model."""

    def __post_init__(self) -> None:
        if self.logprobs is not None and len(self.logprobs) != len(self.token_ids):
            raise ValueError(
                f"{len(self.token_ids)} token ids but {len(self.logprobs)} logprobs: they must match one to one"
            )
