"""Groups and what makes one informative."""

from __future__ import annotations

import pytest

from sortie.core.group import Assignment, Group
from sortie.core.trajectory import Trajectory


@pytest.mark.parametrize(
    ("rewards", "informative"),
    [
        ([1.0, 0.0], True),
        ([1.0, 1.0], False),
        ([1.0, None], False),
        ([None, None], False),
        ([0.5, None, 0.25], True),
        ([], False),
    ],
)
def test_a_group_informs_when_two_scored_members_differ(rewards: list[float | None], informative: bool) -> None:
    """Pain F2, F13: decided from raw rewards of the members that were scored."""
    members = [Trajectory(id=str(i), task_key="e/1", env="e", reward=reward) for i, reward in enumerate(rewards)]
    group = Group(Assignment(0, "e/1", len(members)), members)
    assert group.informative is informative
    assert len(group.scored) == sum(reward is not None for reward in rewards)
