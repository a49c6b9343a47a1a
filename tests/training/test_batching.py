from __future__ import annotations

import numpy as np
import pytest

from sortie.core.group import Assignment, Group
from sortie.core.trajectory import Trajectory
from sortie.training.batching import batch_of
from sortie.training.config import LossConfig


def trajectory(reward: float | None, turns: list[int]) -> Trajectory:
    """A prompt of 5 tokens, then turns of the given lengths with 3 observation tokens between them."""
    t = Trajectory(id="r", task_key="e/1", env="e", reward=reward)
    at = t.add("prompt", [1] * 5, None).id
    for length in turns:
        at = t.add("sampled", [2] * length, at, logprobs=[-1.0] * length).id
        at = t.add("observation", [3] * 3, at).id
    return t


def group(*members: Trajectory) -> Group:
    return Group(Assignment(0, "e/1", len(members)), list(members))


def test_each_row_applies_its_own_mask_to_its_rollouts_advantage() -> None:
    """Pain A18, A21: rows of different lengths, one advantage each, on sampled tokens only."""
    batch = batch_of([group(trajectory(1.0, [4]), trajectory(0.0, [2, 6]))], LossConfig())
    short, long = batch.data
    for datum, advantage, sampled in ((short, 0.5, 4), (long, -0.5, 8)):
        on = datum.loss_inputs["weights"] > 0
        assert on.sum() == sampled
        assert (datum.loss_inputs["target_tokens"][on] == 2).all()
        assert np.allclose(datum.loss_inputs["advantages"][on], advantage)
        assert (datum.loss_inputs["advantages"][~on] == 0).all()


def test_equal_rewards_are_in_neither_the_sum_nor_its_denominator() -> None:
    """Pain F2: an uninformative group leaves the others' weights as they were."""
    informative = group(trajectory(1.0, [4]), trajectory(0.0, [4]))
    flat = group(trajectory(1.0, [9]), trajectory(1.0, [9]))
    alone, beside = batch_of([informative], LossConfig()), batch_of([informative, flat], LossConfig())
    assert beside.informative == 1
    assert len(beside.data) == len(alone.data)
    assert all(
        (a.loss_inputs["weights"] == b.loss_inputs["weights"]).all()
        for a, b in zip(alone.data, beside.data, strict=True)
    )


def test_a_rollout_without_score_or_trace_makes_no_row_and_no_statistic() -> None:
    """Pain A25, F13, E10: survivors are compared among themselves."""
    failed, empty = trajectory(None, [4]), trajectory(0.0, [])
    batch = batch_of([group(trajectory(1.0, [4]), failed, empty)], LossConfig())
    (datum,) = batch.data
    assert datum.loss_inputs["advantages"].max() == pytest.approx(0.5)


def test_nothing_to_learn_gives_an_empty_batch() -> None:
    """Pain F1."""
    batch = batch_of([group(trajectory(1.0, [4]), trajectory(1.0, [4]))], LossConfig())
    assert (batch.data, batch.trainable_tokens, batch.informative) == ([], 0, 0)


@pytest.mark.parametrize("normalise", ["token", "rollout"])
def test_weights_sum_to_one(normalise: str) -> None:
    groups = [group(trajectory(1.0, [4]), trajectory(0.0, [2, 6]))]
    batch = batch_of(groups, LossConfig(normalise=normalise))
    assert sum(d.loss_inputs["weights"].sum() for d in batch.data) == pytest.approx(1.0)
    per_row = [d.loss_inputs["weights"].sum() for d in batch.data]
    assert (per_row[0] == pytest.approx(per_row[1])) == (normalise == "rollout")


def test_group_norm_divides_by_the_spread() -> None:
    batch = batch_of([group(trajectory(1.0, [4]), trajectory(0.0, [4]))], LossConfig(advantage="group_norm"))
    assert batch.data[0].loss_inputs["advantages"].max() == pytest.approx(1.0)


def test_the_whole_prompt_stays_in_the_row_as_context() -> None:
    """Pain B4: rows are one flat sequence; whatever was not sampled is read and never trained."""
    batch = batch_of([group(trajectory(1.0, [4]), trajectory(0.0, [4]))], LossConfig())
    for datum in batch.data:
        assert datum.tokens[:5].tolist() == [1] * 5
        assert (datum.loss_inputs["weights"][:4] == 0).all()
        assert len(datum.tokens) == 5 + 4 + 3 - 1
