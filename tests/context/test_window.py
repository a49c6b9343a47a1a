from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from sortie.context.limits import LimitReached, Limits
from sortie.context.window import ContextWindow
from sortie.core.errors import ConfigError
from sortie.core.trajectory import StopReason

sizes = st.integers(1, 60)


@given(turn=sizes, rollout=sizes, window=st.integers(2, 60), spent=st.integers(0, 80), prompt=st.integers(0, 80))
def test_an_allowance_never_passes_a_limit_and_nothing_is_allowed_only_at_a_limit(
    turn: int, rollout: int, window: int, spent: int, prompt: int
) -> None:
    """Pain B1, B3, B5: prompt + max_tokens <= window, before every call."""
    counter = ContextWindow(Limits(turn_tokens=turn, rollout_tokens=rollout, window=window))
    counter.spend(spent)
    if prompt >= window or spent >= rollout:
        with pytest.raises(LimitReached) as limit:
            counter.cap(prompt)
        assert limit.value.reason is (StopReason.WINDOW if prompt >= window else StopReason.ROLLOUT_TOKENS)
        return
    cap = counter.cap(prompt)
    assert cap.tokens == counter.allowance(prompt) == min(turn, rollout - spent, window - prompt) >= 1
    binding = {
        StopReason.TURN_TOKENS: turn,
        StopReason.ROLLOUT_TOKENS: rollout - spent,
        StopReason.WINDOW: window - prompt,
    }
    assert binding[cap.reason] == cap.tokens


def test_limits_refuse_nonsense() -> None:
    with pytest.raises(ConfigError, match="unknown option 'turn_token': did you mean 'turn_tokens'"):
        Limits.from_toml("turn_token = 3")
    with pytest.raises(ConfigError, match="window"):
        Limits.from_toml("window = 1")
