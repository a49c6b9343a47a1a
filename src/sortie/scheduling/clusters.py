"""A bounded set of pattern clusters that grows as new patterns appear.

Centres never move, so a cluster's number means the same for the whole run and after a resume.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Clusters:
    """Farthest-first traversal (Gonzalez 1985), carried on whenever vectors arrive.

    While there is room, whatever lies farther than `radius` from every centre becomes one; then the nearest centre
    serves. With fewer distinct vectors than `limit`, each is its own cluster.
    """

    def __init__(self, limit: int, *, radius: float = 0.25, standardise: bool = False) -> None:
        self._limit = limit
        self._radius = radius
        self._standardise = standardise
        self._scale: Vectors | None = None
        self._centres: list[Vectors] = []

    def __len__(self) -> int:
        return len(self._centres)

    def assign(self, vectors: Vectors, *, grow: bool = True) -> NDArray[np.int64]:
        """The cluster of each row. Columns are scaled by their spread in the first batch if so asked."""
        if not len(vectors):
            return np.zeros(0, dtype=np.int64)
        if self._scale is None:
            spread = vectors.std(axis=0) if self._standardise else np.ones(vectors.shape[1], dtype=np.float32)
            self._scale = np.where(spread > 1e-6, spread, 1.0).astype(np.float32)
        unique, inverse = _distinct(vectors / self._scale)
        nearest = np.zeros(len(unique), dtype=np.int64)
        distance = np.full(len(unique), np.inf, dtype=np.float32)
        for number, centre in enumerate(self._centres):
            _compare(unique, centre, number, nearest, distance)
        while grow and len(self._centres) < self._limit and distance.max() > self._radius:
            centre = unique[distance.argmax()]
            self._centres.append(centre)
            _compare(unique, centre, len(self._centres) - 1, nearest, distance)
        return nearest[inverse]

    def likeness(self) -> NDArray[np.float64]:
        """How alike clusters are [K, K]: exp(-2 d^2 / m) for centres at distance d, with m the median d^2 (ours)."""
        if len(self._centres) < 2:
            return np.eye(len(self._centres))
        centres = np.array(self._centres, dtype=float)
        squares = ((centres[:, None] - centres[None, :]) ** 2).sum(axis=2)
        median = float(np.median(squares[np.triu_indices(len(centres), 1)]))
        return np.asarray(np.exp(-2.0 * squares / median))

    def state_dict(self) -> dict[str, Any]:
        """JSON values."""
        scale = None if self._scale is None else self._scale.tolist()
        return {"scale": scale, "centres": [centre.tolist() for centre in self._centres]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over saved centres."""
        self._scale = None if state["scale"] is None else np.array(state["scale"], dtype=np.float32)
        self._centres = [np.array(centre, dtype=np.float32) for centre in state["centres"]]


def _distinct(vectors: Vectors) -> tuple[Vectors, NDArray[np.int64]]:
    """Distinct rows, sorted so that the order of arrival does not matter, and where each row went."""
    bits = [row.tobytes() for row in vectors]
    number = {row: i for i, row in enumerate(sorted(set(bits)))}
    unique = np.frombuffer(b"".join(number), dtype=vectors.dtype).reshape(len(number), -1)
    return unique, np.fromiter((number[row] for row in bits), dtype=np.int64, count=len(bits))


def _compare(
    vectors: Vectors, centre: Vectors, number: int, nearest: NDArray[np.int64], distance: NDArray[np.float32]
) -> None:
    """Move the rows that `centre` is nearest to over to it, in place."""
    d = np.sqrt(((vectors - centre) ** 2).sum(axis=1))
    closer = d < distance
    nearest[closer] = number
    distance[closer] = d[closer]
