"""The tokens an agent may still use."""

from __future__ import annotations

from dataclasses import dataclass

from sortie.context.limits import LimitReached, Limits
from sortie.core.trajectory import StopReason


@dataclass(frozen=True, slots=True)
class Cap:
    """How many tokens one call may draw, and the limit that says so."""

    tokens: int
    reason: StopReason


class ContextWindow:
    """Counts one rollout's tokens against its three limits: turn, rollout and window.

    All threads of the rollout share it; threads that draw at the same moment may each use what is left.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.spent = 0
        """Tokens sampled so far, abandoned turns included."""

    @property
    def rollout_left(self) -> int:
        """Tokens the rollout may still sample."""
        return self.limits.rollout_tokens - self.spent

    def allowance(self, prompt_tokens: int) -> int:
        """Tokens the next call may draw after a prompt of this length.

        Raises: LimitReached(WINDOW | ROLLOUT_TOKENS) if there are none.
        """
        return self.cap(prompt_tokens).tokens

    def cap(self, prompt_tokens: int, wanted: int | None = None) -> Cap:
        """The tightest limit on the next call; `wanted` tightens the turn's own.

        Raises: LimitReached(WINDOW | ROLLOUT_TOKENS) before anything is sent, if nothing may be drawn.
        """
        limits = self.limits
        turn = limits.turn_tokens if wanted is None else min(wanted, limits.turn_tokens)
        window = limits.window - prompt_tokens
        if window < 1:
            raise LimitReached(
                StopReason.WINDOW, f"a prompt of {prompt_tokens} tokens fills the window ({limits.window})"
            )
        if self.rollout_left < 1:
            raise LimitReached(
                StopReason.ROLLOUT_TOKENS, f"all {limits.rollout_tokens} tokens of the rollout are spent"
            )
        # On a tie the turn's cap is named first: raising the other one would not have helped.
        caps = (
            (turn, StopReason.TURN_TOKENS),
            (self.rollout_left, StopReason.ROLLOUT_TOKENS),
            (window, StopReason.WINDOW),
        )
        return Cap(*min(caps, key=lambda cap: cap[0]))

    def spend(self, tokens: int) -> None:
        """Count tokens that were sampled."""
        self.spent += tokens
