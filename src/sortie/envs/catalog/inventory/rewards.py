"""Graded on what the inventory looks like in the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sortie.agents.reward import reward
from sortie.core.trajectory import Trajectory
from sortie.envs.catalog.inventory.shop import Inventory


@reward(inline=True)
def as_asked(state: Inventory, goal: Mapping[str, Any], trajectory: Trajectory) -> float:
    """1 if the agent ended by itself and the inventory is exactly as asked, else 0: one change too many is wrong."""
    return float(trajectory.stop_reason.terminated and state.snapshot() == goal)
