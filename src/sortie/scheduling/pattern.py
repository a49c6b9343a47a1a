"""Interaction patterns as features: of finished rollouts from their trajectories, of unseen tasks from their text.

Features never contain rewards, and carry no environment's name, so that equal behaviour looks equal everywhere.
Every value lies in [0, 1], so that distances between features need no scaling. The choice of features is ours.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sortie.core.group import Features
from sortie.core.trajectory import Trajectory

WIDTH = 128
"""Length of a feature vector; names are hashed into it."""
BUCKETS = 32
"""Hash buckets of tool n-grams, so that any number of tools makes a bounded pattern."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_TOKEN = re.compile(r"[^\W\d]+|\d+|[^\w\s]")


def group_features(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """The mean pattern of a group: turns, sampled tokens, tool n-grams, errors, stop reasons. Empty for no rollouts."""
    return _mean([trajectory_features(trajectory) for trajectory in trajectories])


def trajectory_features(trajectory: Trajectory) -> dict[str, float]:
    """The pattern of one rollout.

    `turns` and `tokens` are logarithmic (64 turns and 65,536 tokens are 1); `tool_errors` is the share of calls that
    failed, `parse_errors` of turns that could not be read; `ngram:*` are shares of the tool uni- and bigrams, start
    and end included; `stop:*` and `boundary:*` are 1 where they happened.
    """
    calls = trajectory.tools
    features = {
        "turns": min(1.0, math.log2(1 + trajectory.turns) / 6),
        "tokens": min(1.0, math.log2(1 + trajectory.sampled_tokens) / 16),
        "tool_errors": sum(call.error for call in calls) / max(len(calls), 1),
        "parse_errors": min(1.0, trajectory.parse_errors / max(trajectory.turns, 1)),
        f"stop:{trajectory.stop_reason.value}": 1.0,
    }
    if trajectory.boundary is not None:
        features[f"boundary:{trajectory.boundary}"] = 1.0
    for name, share in _shares(_ngrams([call.name for call in calls])).items():
        features[f"ngram:{name}"] = share
    return features


def text_features(text: str) -> dict[str, float]:
    """The pattern a task's text hints at: hashed token uni- and bigrams, all numbers alike, of Euclidean length 1."""
    counts = Counter(f"token:{_bucket(gram, WIDTH)}" for gram in _ngrams(_TOKEN.findall(_template(text))))
    length = math.sqrt(sum(n * n for n in counts.values()))
    return {name: n / length for name, n in counts.items()}


def text_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Text features as rows [N, WIDTH]. Procedural texts are few once their numbers are alike: each is hashed once."""
    templates = [_template(text) for text in texts]
    number = {template: i for i, template in enumerate(dict.fromkeys(templates))}
    return as_vectors([text_features(template) for template in number])[[number[template] for template in templates]]


def as_vectors(features: Sequence[Features]) -> NDArray[np.float32]:
    """Features as rows [N, WIDTH]. Names are hashed to columns; a plain sequence fills columns in order."""
    out = np.zeros((len(features), WIDTH), dtype=np.float32)
    for row, values in zip(out, features, strict=True):
        if isinstance(values, Mapping):
            for name, value in values.items():
                row[_column(name)] += value
        else:
            for i, value in enumerate(values):
                row[i % WIDTH] += value
    return out


def _template(text: str) -> str:
    return _NUMBER.sub("0", text.lower())


@lru_cache(maxsize=65536)
def _column(name: str) -> int:
    return crc32(name.encode()) % WIDTH


def _ngrams(words: Sequence[str]) -> list[str]:
    bounded = ["<", *words, ">"]
    return [*words, *(f"{a} {b}" for a, b in pairwise(bounded))]


def _bucket(gram: str, buckets: int) -> str:
    return f"{crc32(gram.encode()) % buckets:02d}"


def _shares(grams: Iterable[str]) -> dict[str, float]:
    counts = Counter(_bucket(gram, BUCKETS) for gram in grams)
    total = sum(counts.values())
    return {bucket: n / total for bucket, n in counts.items()}


def _mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row)
    return {name: value / len(rows) for name, value in total.items()}
