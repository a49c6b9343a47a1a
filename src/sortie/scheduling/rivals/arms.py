"""Bandits over categories of tasks: their reward, and how draws of categories become a choice of tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sortie.scheduling.keyed import Hashes, uniforms
from sortie.scheduling.rivals.tasks import Floats, Ints


def absolute_advantages(rewards: Sequence[float]) -> Floats:
    """|r - mean| / standard deviation of a group, as GRPO scales advantages; zeros where all rewards are equal.

    For binary rewards with mean p, their mean is 2 sqrt(p (1 - p)).
    """
    values = np.array(rewards)
    spread = values.std()
    return np.abs(values - values.mean()) / spread if spread > 1e-12 else np.zeros(len(values))


def softmax(values: Floats, temperature: float) -> Floats:
    """Chances in proportion to exp(value / temperature)."""
    weights = np.exp((values - values.max(initial=-np.inf)) / temperature)
    return np.asarray(weights / weights.sum())


def race(
    arm: Ints, chances: Floats, names: Sequence[str], free: NDArray[np.bool_], hashes: Hashes, seed: int, select: int
) -> Floats:
    """A score per task, so that the g lowest are g independent draws of an arm, each with a task of that arm.

    Tasks of an arm come in random order, free ones first. The k-th of an arm with chance w arrives at the k-th event of
    a Poisson process with rate w: the merged arrivals are multinomial draws of arms, and an arm that has run out of
    tasks is left out of the later draws. Keyed by seed, select and name, so the order of tasks does not matter.
    """
    place = uniforms(hashes, seed, "place", select)
    arrival = np.zeros(len(arm))
    for number, name in enumerate(names):
        members = np.flatnonzero(arm == number)
        members = members[np.lexsort((place[members], ~free[members]))]
        gaps = -np.log1p(-uniforms(np.arange(len(members), dtype=np.uint64), seed, "gap", select, name))
        arrival[members] = np.cumsum(gaps) / max(float(chances[number]), 1e-290)
    score = np.zeros(len(arm))
    score[np.lexsort((place, arrival))] = np.arange(len(arm))
    return score
