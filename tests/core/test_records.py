"""A rollout as data and back."""

from __future__ import annotations

import json
import math

import pytest
from rollout_examples import make_rollout

from sortie.core.files import to_json
from sortie.core.records import from_line, to_line, tokens_of

HEAD = {"serial": 0, "step": 1, "phase": "train", "at": 0.0}


def test_a_rollout_comes_back_equal_in_every_field() -> None:
    trajectory, task = make_rollout()
    line = json.loads(to_json({**HEAD, **to_line(trajectory, task)}))
    record = from_line(line, tokens_of(trajectory))
    assert record.trajectory == trajectory
    assert record.task == task
    assert record.trajectory.rows() == trajectory.rows()


def test_a_broken_call_keeps_why_it_could_not_be_read() -> None:
    trajectory, task = make_rollout()
    record = from_line({**HEAD, **to_line(trajectory, task)}, tokens_of(trajectory))
    message = record.trajectory.nodes[1].message
    assert message is not None
    assert message.tool_calls[0].error == "not JSON"


def test_the_index_line_holds_no_token_arrays() -> None:
    line = to_line(*make_rollout())
    assert [node["tokens"] for node in line["nodes"]] == [3, 2, 2, 1, 1]
    assert not any("token_ids" in node or "logprobs" in node for node in line["nodes"])


def test_a_reward_that_is_not_finite_is_recorded_as_not_scored() -> None:
    """Pain E9."""
    trajectory, task = make_rollout(reward=math.nan)
    line = json.loads(to_json({**HEAD, **to_line(trajectory, task)}))
    assert from_line(line, tokens_of(trajectory)).trajectory.reward is None


def test_token_arrays_of_another_rollout_are_refused() -> None:
    """Pain A4: ids and logprobs never get out of step."""
    trajectory, task = make_rollout()
    tokens = tokens_of(trajectory)
    tokens[0] = ([1, 2], None)
    with pytest.raises(ValueError, match="other lengths"):
        from_line({**HEAD, **to_line(trajectory, task)}, tokens)
