"""Groups of trajectories become training rows.

Only informative groups train: siblings whose raw rewards differ. The others are in neither the sum nor its denominator,
and a rollout that was not scored, or left no sampled token, makes no row. An advantage is one number per rollout; each
row applies its own mask to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sortie.core.datum import Datum
from sortie.core.group import Group
from sortie.core.trajectory import Row
from sortie.training.advantages import ADVANTAGES
from sortie.training.config import LossConfig


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of one step."""

    data: list[Datum]
    trainable_tokens: int
    """Sampled tokens with a weight."""
    informative: int
    """Groups that made rows."""


def batch_of(groups: Sequence[Group], config: LossConfig) -> Batch:
    """Rows of the informative groups, their weights summing to one over the batch."""
    kept = [group for group in groups if group.informative]
    rows: list[tuple[Row, float, int]] = []
    rollout = 0
    for group in kept:
        rewards = np.array(group.rewards, dtype=np.float64)
        for trajectory, advantage in zip(group.scored, ADVANTAGES[config.advantage](rewards), strict=True):
            rows += [(row, float(advantage), rollout) for row in trajectory.rows()]
            rollout += 1
    tokens = sum(sum(row.mask) for row, _, _ in rows)
    per_rollout: dict[int, int] = {}
    for row, _, owner in rows:
        per_rollout[owner] = per_rollout.get(owner, 0) + sum(row.mask)
    data = []
    for row, advantage, owner in rows:
        share = 1 / tokens if config.normalise == "token" else 1 / (per_rollout[owner] * len(per_rollout))
        data.append(policy_datum(row, advantage, share))
    return Batch(data, tokens, len(kept))


def policy_datum(row: Row, advantage: float, weight: float) -> Datum:
    """A row for a policy-gradient loss: entry t is about predicting token t + 1 from the tokens up to t."""
    mask = np.array(row.mask[1:], dtype=np.float32)
    return Datum(
        tokens=np.array(row.token_ids[:-1], dtype=np.int64),
        loss_inputs={
            "target_tokens": np.array(row.token_ids[1:], dtype=np.int64),
            "weights": mask * np.float32(weight),
            "logprobs": np.array(row.logprobs[1:], dtype=np.float32),
            "advantages": mask * np.float32(advantage),
        },
    )


def cross_entropy_datum(token_ids: Sequence[int], mask: Sequence[int], weight: float = 1.0) -> Datum:
    """A row for supervised training: `mask` is 1 on the tokens to imitate."""
    return Datum(
        tokens=np.array(token_ids[:-1], dtype=np.int64),
        loss_inputs={
            "target_tokens": np.array(token_ids[1:], dtype=np.int64),
            "weights": np.array(mask[1:], dtype=np.float32) * np.float32(weight),
        },
    )
