"""The contract of everything that draws tokens.

Cancelling the task that awaits `sample` aborts the request. A pinned policy is never served by another version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sortie.core.completion import Completion, SamplingParams
from sortie.core.policy import PolicyVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """One prompt and how to continue it; a value object, so that routing and admission change no signature."""

    prompt: Sequence[int]
    params: SamplingParams
    n: int = 1
    """Completions to draw; the i-th is keyed by (params.seed, i, position)."""
    policy: PolicyVersion | None = None
    """The version that must serve it; None: the base model."""
    session: str | None = None
    """Turns of one rollout share a session: its KV is kept, and routing sticks."""
    klass: str = "default"
    priority: int = 0
    deadline_s: float | None = None
    """Seconds from submission after which the request is aborted and ModelError raised."""


class SamplingClient(Protocol):
    """Handle to sample."""

    async def sample(self, request: SampleRequest) -> list[Completion]:
        """Draw `request.n` completions.

        Raises: ModelError if the sampler failed or the deadline passed, BudgetError if the prompt exceeds the window.
        """
        ...
