"""Graded on sub-goals: each thing counts half for being found and half for lying in its place."""

from __future__ import annotations

from collections.abc import Sequence

from sortie.agents.reward import reward
from sortie.envs.catalog.text_world.world import World


@reward(inline=True)
def progress(state: World, goals: Sequence[tuple[str, str]]) -> float:
    """Share of the sub-goals reached, 1 for all of them. What is put in place and taken out again is not in place."""
    found = sum(item in state.taken for item, _ in goals)
    return (found + state.placed(goals)) / (2 * len(goals))
