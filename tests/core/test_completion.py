"""What a sampler returns."""

from __future__ import annotations

import pytest

from sortie.core.completion import Completion


def test_ids_and_logprobs_match_one_to_one_or_there_are_none() -> None:
    """Pain A4."""
    assert Completion(token_ids=[1, 2], logprobs=None, stop_reason="stop").logprobs is None
    with pytest.raises(ValueError, match="2 token ids but 1 logprobs"):
        Completion(token_ids=[1, 2], logprobs=[-1.0], stop_reason="stop")
