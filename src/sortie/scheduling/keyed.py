"""Randomness without a stream: one uniform number per (seed, task key, counters).

Draws depend on nothing else, so neither the order of tasks, nor a resume, nor tasks that come and go change them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def key_hashes(keys: Sequence[str]) -> Hashes:
    """64 bits per key, equal on every machine."""
    return np.fromiter((_word(key) for key in keys), dtype=np.uint64, count=len(keys))


def uniforms(hashes: Hashes, seed: int, *counters: int | str) -> NDArray[np.float64]:
    """One number in [0, 1) per hash, keyed by `seed` and `counters`."""
    stream = np.array([_word(repr((seed, *counters)))], dtype=np.uint64)
    return (_mix(_mix(hashes) ^ stream) >> np.uint64(11)).astype(np.float64) / 2.0**53


def uniform(seed: int, *counters: int | str) -> float:
    """One number in [0, 1), keyed by `seed` and `counters`."""
    return float(uniforms(np.zeros(1, dtype=np.uint64), seed, *counters)[0])


def _word(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _mix(x: Hashes) -> Hashes:
    """SplitMix64's output function (Steele, Lea & Flood 2014)."""
    x = x + GOLDEN
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
