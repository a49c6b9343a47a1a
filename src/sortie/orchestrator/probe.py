"""One short prompt through the engine and through a plain pass, under the same adapter: do they agree?

The prompt is the same every time, so KV that was kept from an earlier policy and is wrongly taken for this one's shows
as a gap between the two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sortie.core.completion import SamplingParams
from sortie.core.messages import user
from sortie.core.policy import PolicyVersion
from sortie.inference.client import SampleRequest
from sortie.orchestrator.session import LocalSession

if TYPE_CHECKING:
    from sortie.models.lora import Lora

PROMPT = "Count from one to ten."
TOKENS = 4
"""Tokens drawn; with the prompt, some 40 pass through the model twice."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Log-probabilities of the same tokens from both."""

    served: tuple[float, ...]
    plain: tuple[float, ...]
    prompt: tuple[int, ...] = ()
    token_ids: tuple[int, ...] = ()
    """The tokens drawn after `prompt`."""

    @property
    def gap(self) -> float:
        """The largest difference."""
        return max((abs(a - b) for a, b in zip(self.served, self.plain, strict=True)), default=0.0)


async def probe(
    session: LocalSession,
    policy: PolicyVersion | None,
    lora: Lora | None,
    *,
    prompt: Sequence[int] | None = None,
    tokens: int = TOKENS,
    temperature: float = 1.0,
) -> Probe:
    """Draw a few tokens from the engine under `policy`, and judge them by a plain pass under `lora`.

    `lora` must hold the weights that `policy` names; both are None for the base model.
    Raises: ModelError if the engine does not serve `policy`.
    """
    from sortie.models.plain import plain_logprobs

    ids = list(session.renderer.render([user(PROMPT)]) if prompt is None else prompt)
    params = SamplingParams(max_tokens=tokens, temperature=temperature, stop_ids=session.renderer.stop_ids)
    (drawn,) = await session.client.sample(SampleRequest(prompt=ids, params=params, policy=policy))
    row = [*ids, *drawn.token_ids]
    plain = await asyncio.to_thread(plain_logprobs, session.decoder, row, lora, temperature)
    served = tuple(drawn.logprobs or ())
    return Probe(served, tuple(plain[-len(drawn.token_ids) :]), tuple(ids), tuple(drawn.token_ids))
