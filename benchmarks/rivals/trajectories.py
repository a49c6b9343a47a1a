"""The agent pattern as training rows: what both trainers read, in one file. numpy only.

A row is a prompt that its group shares, then turns of sampled tokens with observations between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

CLIP = {"clip_low": 0.2, "clip_high": 0.28}
"""Bounds of the ratio in the loss of both sides."""
NOISE = 0.1
"""Standard deviation of what the behaviour policy's logprobs are off by, so that some ratios are clipped."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Lengths of one trajectory, in tokens."""

    prompt: int = 200
    turns: int = 3
    sampled: int = 40
    observation: int = 60

    @property
    def mask(self) -> Ints:
        """1 where a token was sampled, [T]."""
        turn = [0] * self.observation + [1] * self.sampled
        return np.array([0] * self.prompt + ([1] * self.sampled + turn * (self.turns - 1)), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Trajectories:
    """R rows of T tokens. Row r belongs to group r // group_size."""

    tokens: Ints
    """[R, T]."""
    mask: Ints
    """[T]: where tokens were sampled; the same in every row."""
    logprobs: Floats
    """[R, T]: the behaviour policy's, where the mask is 1."""
    advantages: Floats
    """[R]."""

    @property
    def weight(self) -> float:
        """Of each sampled token: all weigh the same, and one together."""
        return 1.0 / (len(self.tokens) * int(self.mask.sum()))

    def first(self, rows: int) -> Trajectories:
        """The first `rows` rows alone."""
        return Trajectories(self.tokens[:rows], self.mask, self.logprobs[:rows], self.advantages[:rows])

    def save(self, path: Path) -> None:
        """To one .npz file."""
        np.savez(path, tokens=self.tokens, mask=self.mask, logprobs=self.logprobs, advantages=self.advantages)

    @classmethod
    def load(cls, path: Path) -> Trajectories:
        with np.load(path) as file:
            return cls(file["tokens"], file["mask"], file["logprobs"], file["advantages"])


def agent_rows(text: Sequence[int], groups: int, group_size: int, pattern: Pattern, seed: int = 0) -> Ints:
    """Rows [R, T] cut from `text`, a long run of token ids: siblings share their prompt and nothing after it."""
    rng = np.random.default_rng(seed)
    source, length = np.asarray(text, dtype=np.int64), len(pattern.mask)
    if len(source) <= length:
        raise ValueError(f"a text of {len(source)} tokens is too short for rows of {length}")

    def piece(tokens: int) -> Ints:
        start = int(rng.integers(0, len(source) - tokens))
        return source[start : start + tokens]

    rows = []
    for _ in range(groups):
        prompt = piece(pattern.prompt)
        rows += [np.concatenate([prompt, piece(length - pattern.prompt)]) for _ in range(group_size)]
    return np.stack(rows)


def group_advantages(groups: int, group_size: int, seed: int = 0) -> Floats:
    """Random rewards minus their group's mean, [R]."""
    rewards = np.random.default_rng(seed).random((groups, group_size))
    return (rewards - rewards.mean(axis=1, keepdims=True)).astype(np.float32).ravel()


def distinct_tokens(tokens: Ints) -> int:
    """Positions that must be computed when rows that begin alike share their beginning: nodes of the rows' trie."""
    order = sorted(row.tolist() for row in tokens)
    total, previous = 0, []
    for row in order:
        shared = 0
        while shared < min(len(previous), len(row)) and previous[shared] == row[shared]:
            shared += 1
        total += len(row) - shared
        previous = row
    return total
