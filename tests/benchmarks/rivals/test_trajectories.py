from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.rivals.trajectories import Pattern, Trajectories, agent_rows, distinct_tokens, group_advantages

TEXT = list(range(2000))


def test_a_row_of_the_agent_pattern_has_440_tokens_of_which_120_train() -> None:
    mask = Pattern().mask
    assert (len(mask), int(mask.sum())) == (440, 120)
    assert mask[:200].sum() == 0
    assert mask[200:240].all()
    assert not mask[240:300].any()
    assert mask[-40:].all()


def test_siblings_share_their_prompt_and_groups_do_not() -> None:
    rows = agent_rows(TEXT, groups=2, group_size=3, pattern=Pattern())
    assert rows.shape == (6, 440)
    assert (rows[:3, :200] == rows[0, :200]).all()
    assert (rows[3:, :200] == rows[3, :200]).all()
    assert (rows[0, :200] != rows[3, :200]).any()
    assert (rows[0, 200:] != rows[1, 200:]).any()


def test_a_text_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="too short for rows of 440"):
        agent_rows(TEXT[:100], groups=1, group_size=2, pattern=Pattern())


def test_the_same_seed_gives_the_same_rows() -> None:
    assert (agent_rows(TEXT, 1, 2, Pattern(), seed=3) == agent_rows(TEXT, 1, 2, Pattern(), seed=3)).all()


def test_advantages_sum_to_nothing_in_every_group() -> None:
    assert group_advantages(3, 8).reshape(3, 8).sum(axis=1) == pytest.approx([0, 0, 0], abs=1e-6)


def test_distinct_tokens_are_the_nodes_of_the_rows_trie() -> None:
    assert distinct_tokens(np.array([[1, 2, 3], [1, 2, 4], [5, 2, 3], [1, 2, 3]])) == 3 + 1 + 3


def test_rows_survive_their_file_and_the_first_few_weigh_the_same_together(tmp_path: Path) -> None:
    rows = Trajectories(
        agent_rows(TEXT, 1, 4, Pattern()), Pattern().mask, np.ones((4, 440), np.float32), group_advantages(1, 4)
    )
    rows.save(tmp_path / "rows.npz")
    back = Trajectories.load(tmp_path / "rows.npz").first(2)
    assert (back.tokens == rows.tokens[:2]).all()
    assert back.weight * 2 * 120 == pytest.approx(1)
