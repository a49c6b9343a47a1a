"""Patterns of trajectories and texts, and their clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sortie.core.trajectory import StopReason, ToolRecord, Trajectory
from sortie.scheduling.clusters import Clusters
from sortie.scheduling.pattern import as_vectors, group_features, text_features, text_vectors, trajectory_features


def rollout(*tools: str, turns: int = 1, failed: int = 0, tokens: int = 3, **fields: object) -> Trajectory:
    trajectory = Trajectory(id="r", task_key="shop/1", env="shop", **fields)  # type: ignore[arg-type]
    for _ in range(turns):
        trajectory.add("sampled", [1] * tokens, None)
    trajectory.tools = [ToolRecord(name=t, arguments={}, output="", error=i < failed) for i, t in enumerate(tools)]
    return trajectory


def test_a_rollout_is_described_by_turns_tokens_tools_errors_and_end() -> None:
    """Three turns of 5 tokens: log2(4) / 6 and log2(16) / 16."""
    features = trajectory_features(
        rollout("look", "buy", turns=3, failed=1, tokens=5, stop_reason=StopReason.TURN_LIMIT, parse_errors=1)
    )
    ngrams = {name: value for name, value in features.items() if name.startswith("ngram:")}
    assert sum(ngrams.values()) == pytest.approx(1.0)
    assert {name: value for name, value in features.items() if name not in ngrams} == pytest.approx(
        {"turns": 2 / 6, "tokens": 4 / 16, "tool_errors": 0.5, "parse_errors": 1 / 3, "stop:turn_limit": 1.0}
    )


def test_a_broken_rollout_names_its_boundary() -> None:
    broken = rollout(stop_reason=StopReason.ERROR, boundary="env", error="EnvError: no shop")
    assert trajectory_features(broken)["boundary:env"] == 1.0


def test_the_order_of_tools_is_part_of_the_pattern() -> None:
    def ngrams(*tools: str) -> dict[str, float]:
        return {k: v for k, v in trajectory_features(rollout(*tools)).items() if k.startswith("ngram:")}

    assert ngrams("look", "buy") != ngrams("buy", "look")
    assert len(ngrams(*(f"tool{i}" for i in range(500)))) <= 32


def test_equal_behaviour_looks_equal_in_every_environment_and_whatever_the_reward() -> None:
    here, there = rollout("look", reward=1.0), rollout("look", reward=0.0)
    there.env = there.task_key = "elsewhere"
    assert trajectory_features(here) == trajectory_features(there)


def test_a_group_is_the_mean_of_its_rollouts() -> None:
    features = group_features([rollout(), rollout(stop_reason=StopReason.TIME)])
    assert features["stop:agent_done"] == features["stop:time"] == 0.5
    assert group_features([]) == {}


@settings(max_examples=30, deadline=None)
@given(turns=st.integers(0, 200), tools=st.lists(st.text(max_size=5), max_size=20), errors=st.integers(0, 300))
def test_every_feature_lies_between_0_and_1(turns: int, tools: list[str], errors: int) -> None:
    features = trajectory_features(rollout(*tools, turns=turns, parse_errors=errors))
    assert all(0.0 <= value <= 1.0 for value in features.values())


def test_texts_that_differ_only_in_numbers_look_equal() -> None:
    assert text_features("What is 3 + 41?") == text_features("what is 1,207 + 8.5?")
    assert text_features("What is 3 + 41?") != text_features("What is 3 * 41?")
    vectors = text_vectors(["a 1", "a 2", "b 1"])
    assert (vectors[0] == vectors[1]).all()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1])


def test_sequences_and_mappings_become_vectors() -> None:
    vectors = as_vectors([[0.5, 2.0], {"level": 3.0}, {}])
    assert vectors[0][:3].tolist() == [0.5, 2.0, 0.0]
    assert sorted(vectors[1])[-2:] == [0.0, 3.0]
    assert not vectors[2].any()


def test_few_distinct_patterns_each_get_a_cluster() -> None:
    levels = as_vectors([{"level": i % 5} for i in range(50)])
    numbers = Clusters(8, standardise=True).assign(levels)
    assert len({(i % 5, n) for i, n in enumerate(numbers.tolist())}) == 5


def test_clusters_are_bounded_and_the_nearest_serves_then() -> None:
    clusters = Clusters(2)
    assert len(set(clusters.assign(as_vectors([[0.0], [10.0]])))) == 2
    zero, ten = clusters.assign(as_vectors([[0.0], [10.0]]))
    assert clusters.assign(as_vectors([[2.0], [9.0], [100.0]])).tolist() == [zero, ten, ten]
    assert len(clusters) == 2


def test_a_cluster_keeps_its_number_when_others_appear_and_after_a_resume() -> None:
    clusters = Clusters(5)
    first = clusters.assign(as_vectors([[1.0], [3.0]])).tolist()
    clusters.assign(as_vectors([[5.0], [0.0]]))
    again = Clusters(5)
    again.load_state_dict(clusters.state_dict())
    for each in (clusters, again):
        assert each.assign(as_vectors([[1.0], [3.0]])).tolist() == first


def test_without_growth_an_unknown_pattern_opens_no_cluster() -> None:
    clusters = Clusters(5)
    clusters.assign(as_vectors([[1.0]]))
    assert clusters.assign(as_vectors([[50.0]]), grow=False).tolist() == [0]
    assert len(clusters) == 1
