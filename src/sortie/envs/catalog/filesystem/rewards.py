"""Graded on the files that are there in the end."""

from __future__ import annotations

from collections.abc import Mapping

from sortie.agents.reward import reward
from sortie.core.trajectory import Trajectory
from sortie.envs.catalog.filesystem.tree import Tree


@reward
async def as_asked(state: Tree, goal: Mapping[str, str], trajectory: Trajectory) -> float:
    """1 if the agent ended by itself and the files are exactly as asked, else 0: one change too many is wrong."""
    return float(trajectory.stop_reason.terminated and await state.snapshot() == dict(goal))
