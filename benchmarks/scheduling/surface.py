"""What the world lets a scheduler see: task texts, environments' descriptions, and the features of rollouts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sortie.core.trajectory import ToolRecord, Trajectory
from sortie.scheduling import EnvironmentRecord
from sortie.scheduling.pattern import trajectory_features

_VOCABULARY = """
find count sort merge open close read write list order book pay send move copy check compare sum plan fix test table
file room map graph price date name key door lamp train user page query word code line path score
"""
WORDS = _VOCABULARY.split()
TOOLS = ["search", "read", "write", "run", "list", "move", "ask", "answer", "compute", "look"]


@dataclass(frozen=True, slots=True)
class Surface:
    """One interaction pattern as it shows itself."""

    words: tuple[str, ...]
    """Of every task text with this pattern."""
    profile: dict[str, float]
    """Mean features of its rollouts, by the real `trajectory_features`."""


def patterns_of(number: int, rng: np.random.Generator) -> tuple[Surface, ...]:
    """Distinct patterns: each has its own words, and tool calls of 1 to 8 turns."""
    surfaces = []
    for _ in range(number):
        words = tuple(rng.choice(WORDS, size=9, replace=False).tolist())
        calls = rng.choice(TOOLS, size=int(rng.integers(1, 9))).tolist()
        trajectory = Trajectory(id="", task_key="", env="")
        for name in calls:
            trajectory.tools.append(ToolRecord(name=name, arguments={}, output=""))
        for _ in range(len(calls) + 1):
            trajectory.add("sampled", [0] * int(rng.integers(8, 64)), None)
        surfaces.append(Surface(words, trajectory_features(trajectory)))
    return tuple(surfaces)


def text_of(surface: Surface, number: int) -> str:
    """A task text: the pattern's words around a number of its own."""
    return f"{' '.join(surface.words[:4])} {number} {' '.join(surface.words[4:])}."


def environments_of(number: int, per_domain: int, rng: np.random.Generator) -> tuple[EnvironmentRecord, ...]:
    """Environments as they describe themselves; those of a domain share their tools and all words but one."""
    records = []
    for e in range(number):
        if e % per_domain == 0:
            words = rng.choice(WORDS, size=8, replace=False).tolist()
        own = str(rng.choice(WORDS))
        tools = tuple(f"{word}_{e // per_domain}" for word in words[:3])
        records.append(EnvironmentRecord(name=f"env{e:02d}", description=f"{' '.join([*words, own])}.", tools=tools))
    return tuple(records)


def blurred(profile: dict[str, float], blur: float, rng: np.random.Generator) -> dict[str, float]:
    """Features of one group: the pattern's, each off by N(0, blur), within [0, 1]."""
    noise = rng.normal(scale=blur, size=len(profile))
    return {
        name: min(1.0, max(0.0, value + error))
        for (name, value), error in zip(profile.items(), noise.tolist(), strict=True)
    }
