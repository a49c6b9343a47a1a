from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from sortie.training.trie import packs_of

ROWS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=40).map(lambda r: np.array(r, np.int64)), min_size=1)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, pack_tokens=st.integers(1, 80))
def test_every_row_is_spelled_exactly_once_by_one_pack(rows: list, pack_tokens: int) -> None:
    """Pain A8, A27: what is computed is the row itself, token for token."""
    packs = packs_of(rows, pack_tokens)
    seen = [row for pack in packs for row in pack.rows]
    assert sorted(seen) == list(range(len(rows)))
    for pack in packs:
        tokens, positions = pack.tokens_T.numpy(), pack.positions_T.numpy()
        for row in pack.rows:
            places = pack.places(row)
            assert tokens[places].tolist() == rows[row].tolist()
            assert positions[places].tolist() == list(range(len(rows[row])))


def test_siblings_share_their_prompt_and_groups_their_preamble() -> None:
    preamble, prompts = list(range(50)), [[100] * 10, [101] * 10]
    rows = [np.array(preamble + p + [200 + i] * 12, np.int64) for p in prompts for i in range(4)]
    (pack,) = packs_of(rows, 10_000)
    assert len(pack.tokens_T) == 50 + 2 * 10 + 8 * 12


def test_a_pack_holds_no_more_distinct_tokens_than_asked() -> None:
    rows = [np.array([1] * 30 + [i] * 20, np.int64) for i in range(2, 12)]
    packs = packs_of(rows, 75)
    assert len(packs) > 1
    assert all(len(pack.tokens_T) <= 75 for pack in packs)


def test_a_short_common_beginning_does_not_hide_a_long_one_below_it() -> None:
    """Two environments whose prompts start with the same few tokens still share each its own preamble."""
    rows = [np.array([1, 2, 3] + [env] * 60 + [i] * 5, np.int64) for env in (50, 60) for i in range(10, 14)]
    (pack,) = packs_of(rows, 10_000)
    assert len(pack.tokens_T) == 2 * 63 + 8 * 5
