"""The forest of nodes and the rows it gives."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from sortie.core.trajectory import Node, Row, StopReason, Trajectory


def forest() -> Trajectory:
    return Trajectory(id="t", task_key="e/1", env="e")


def sampled(trajectory: Trajectory, parent: int | None, ids: list[int], **fields: object) -> int:
    return trajectory.add("sampled", ids, parent, logprobs=[-0.5] * len(ids), **fields).id


def trained(rows: list[Row]) -> list[list[int]]:
    return [[token for token, mask in zip(row.token_ids, row.mask, strict=True) if mask] for row in rows]


def test_a_straight_conversation_is_one_row_that_trains_what_was_sampled() -> None:
    """Pain A1: the row is the sampled ids themselves."""
    t = forest()
    t.add("prompt", [1, 2], None)
    sampled(t, 0, [3, 4])
    t.add("observation", [5], 1)
    sampled(t, 2, [6])
    (row,) = t.rows()
    assert row.token_ids == [1, 2, 3, 4, 5, 6]
    assert row.mask == [0, 0, 1, 1, 0, 1]
    assert row.logprobs == [0.0, 0.0, -0.5, -0.5, 0.0, -0.5]
    assert row.kinds == ["prompt", "prompt", "sampled", "sampled", "observation", "sampled"]


def test_an_abandoned_retry_trains_nowhere_and_is_in_no_row() -> None:
    t = forest()
    t.add("prompt", [1], None)
    sampled(t, 0, [2], abandoned=True)
    sampled(t, 0, [3])
    assert [row.token_ids for row in t.rows()] == [[1, 3]]
    assert (t.turns, t.sampled_tokens) == (1, 2)


def test_what_hangs_below_an_abandoned_turn_is_gone_with_it() -> None:
    t = forest()
    t.add("prompt", [1], None)
    sampled(t, 0, [2], abandoned=True)
    t.add("observation", [3], 1)
    sampled(t, 2, [4])
    assert t.rows() == []


def test_a_shared_turn_trains_in_the_first_row_and_is_context_in_the_others() -> None:
    """Pain A3, A18."""
    t = forest()
    t.add("prompt", [1], None)
    sampled(t, 0, [2])
    sampled(t, 1, [3])
    sampled(t, 1, [4, 5])
    assert [row.token_ids for row in t.rows()] == [[1, 2, 3], [1, 2, 4, 5]]
    assert trained(t.rows()) == [[2, 3], [4, 5]]


def test_a_prefix_break_makes_a_second_root_with_a_row_of_its_own() -> None:
    """Pain A3, A5."""
    t = forest()
    t.add("prompt", [1], None)
    sampled(t, 0, [2])
    t.add("prompt", [1, 9], None)
    sampled(t, 2, [3])
    assert trained(t.rows()) == [[2], [3]]


def test_a_turn_without_logprobs_is_context_and_is_counted() -> None:
    """Pain A4: untrainable and counted, never padded."""
    t = forest()
    t.add("prompt", [1], None)
    t.add("sampled", [2], 0)
    sampled(t, 1, [3])
    assert trained(t.rows()) == [[3]]
    assert t.untrainable_turns == 1


def test_a_rollout_with_no_trace_gives_no_row() -> None:
    """Pain A25."""
    t = forest()
    assert t.rows() == []
    t.add("prompt", [1, 2], None)
    assert t.rows() == []


def test_an_empty_generation_is_legal() -> None:
    """Pain G17."""
    t = forest()
    t.add("prompt", [1], None)
    sampled(t, 0, [])
    assert t.rows() == []
    assert t.turns == 1


def test_ids_and_logprobs_out_of_step_are_refused() -> None:
    """Pain A4."""
    with pytest.raises(ValueError, match="2 ids but 1 logprobs"):
        Node(id=0, parent=None, kind="sampled", token_ids=[1, 2], logprobs=[-0.1])


@pytest.mark.parametrize("parent", [0, -1, 7])
def test_a_parent_that_is_not_there_is_refused(parent: int) -> None:
    with pytest.raises(ValueError, match="no node"):
        forest().add("sampled", [1], parent)


SHAPES = st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), max_size=12)


@given(SHAPES)
def test_every_live_sampled_token_trains_in_exactly_one_row(shape: list[tuple[int, bool, bool]]) -> None:
    """Pain A4, A18: sum of masks == live sampled tokens with logprobs, whatever the forest."""
    t = forest()
    t.add("prompt", [0], None)
    for i, (back, is_sampled, abandoned) in enumerate(shape, start=1):
        parent = max(0, i - 1 - back)
        if is_sampled:
            sampled(t, parent, [i], abandoned=abandoned)
        else:
            t.add("observation", [i], parent)
    live = [
        node.token_ids[0]
        for node in t.nodes
        if node.kind == "sampled" and not any(above.abandoned for above in t.path(node.id))
    ]
    assert sorted(token for row in trained(t.rows()) for token in row) == sorted(live)


def test_every_stop_reason_is_an_end_a_limit_or_a_break() -> None:
    ended = {reason for reason in StopReason if reason.terminated}
    cut = {reason for reason in StopReason if reason.truncated}
    assert ended == {StopReason.ANSWERED, StopReason.ENV_DONE, StopReason.AGENT_DONE}
    assert set(StopReason) - ended - cut == {StopReason.ERROR, StopReason.ABORTED}
    assert not ended & cut
