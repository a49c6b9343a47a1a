"""Right or wrong."""

from __future__ import annotations

from sortie.agents.reward import reward
from sortie.envs.answers import same


@reward(inline=True)
def correct(answer: str | None, result: str) -> float:
    """1 if the agent's answer is the result and nothing else, else 0."""
    return float(same(answer, result))
