"""What rollouts taught of single pairs: one Gaussian observation of a logit per pair, as columns.

Only pairs with something to say have a row here. A result is forgotten exponentially in policy versions; when nothing
is left of it, or there are too many, its row goes and the pair is unknown again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sortie.scheduling.factors import EXPOSURES, Floats, Ints, Observations

LIMIT = 1 << 17
"""Most rows; the weakest go first."""
FAINT = 1e-3
"""Precision below which a row goes."""
_COLUMNS: dict[str, tuple[type, tuple[int, ...]]] = {
    "pair": (np.int64, ()),
    "cell": (np.int64, ()),
    "hint": (np.int64, ()),
    "pattern": (np.int64, ()),
    "precision": (np.float64, ()),
    "value": (np.float64, ()),
    "exposure": (np.float64, (EXPOSURES,)),
    "clock": (np.float64, ()),
    "groups": (np.float64, ()),
}
GONE = -1
"""Pair of a row whose task was removed; what it taught about others stays."""


class Sites:
    """Rows of observations."""

    def __init__(self) -> None:
        self.pair: Ints
        self.cell: Ints
        self.hint: Ints
        self.pattern: Ints
        """Of the last rollouts that left features; 0 before."""
        self.precision: Floats
        """At `clock`."""
        self.value: Floats
        self.exposure: Floats
        """[S, 4]"""
        self.clock: Floats
        """Policy version that `precision` refers to."""
        self.groups: Floats
        """Groups seen, forgotten as precision is."""
        self.scatter = np.zeros((EXPOSURES + 1, EXPOSURES + 1))
        """Within-pair scatter of (exposure, value), see Observations."""
        for name, (kind, shape) in _COLUMNS.items():
            setattr(self, name, np.zeros((0, *shape), dtype=kind))

    def __len__(self) -> int:
        return len(self.pair)

    def open(self, pair: Ints, cell: Ints, hint: Ints) -> Ints:
        """Append empty rows for these pairs; returns their numbers."""
        first, n = len(self), len(pair)
        for name, (kind, shape) in _COLUMNS.items():
            setattr(self, name, np.concatenate([getattr(self, name), np.zeros((n, *shape), dtype=kind)]))
        self.pair[first:], self.cell[first:], self.hint[first:] = pair, cell, hint
        return np.arange(first, first + n)

    def remaining(self, clock: float, forget: float) -> Floats:
        """What is left of each row's precision."""
        return np.asarray(self.precision * (1.0 - forget) ** np.maximum(clock - self.clock, 0.0))

    def add(
        self, rows: Ints, precision: Floats, value: Floats, exposure: Floats, *, clock: float, forget: float
    ) -> None:
        """Combine each row with one new observation, made at `exposure` [n, 4] and worth `precision` at `clock`.

        The combined observation is the precision-weighted mean; what it leaves out, the scatter of the two around it,
        says how logits moved with exposure within a pair, and is kept summed over pairs.
        """
        kept = self.remaining(clock, forget)[rows]
        total = kept + precision
        step = np.column_stack([exposure - self.exposure[rows], value - self.value[rows]])
        self.scatter += (step * (kept * precision / total)[:, None]).T @ step
        self.exposure[rows] += (precision / total)[:, None] * step[:, :-1]
        self.value[rows] += precision / total * step[:, -1]
        self.groups[rows] = self.groups[rows] * kept / np.maximum(self.precision[rows], 1e-300) + 1.0
        self.precision[rows], self.clock[rows] = total, clock

    def observations(self, clock: float, forget: float) -> Observations:
        """All rows as the model takes them."""
        return Observations(
            self.cell, self.hint, self.pattern, self.remaining(clock, forget), self.value, self.exposure, self.scatter
        )

    def prune(self, clock: float, forget: float) -> Ints | None:
        """Drop rows that say nothing any more, and the weakest beyond the limit. Returns the dropped rows' pairs."""
        left = self.remaining(clock, forget)
        keep = left > FAINT
        if len(self) > LIMIT:
            keep &= left >= np.partition(left, len(left) - LIMIT)[len(left) - LIMIT]
        if keep.all():
            return None
        dropped = self.pair[~keep]
        for name in _COLUMNS:
            setattr(self, name, getattr(self, name)[keep])
        return dropped

    def state_dict(self) -> dict[str, Any]:
        """JSON values, but for the pairs: rows mean nothing to another process, so the owner saves their keys."""
        columns = {name: getattr(self, name).tolist() for name in _COLUMNS if name != "pair"}
        return {**columns, "scatter": self.scatter.tolist()}

    def load_state_dict(self, state: Mapping[str, Any], pair: Ints) -> None:
        """Take over saved rows, of these pairs."""
        self.pair = pair
        for name, (kind, shape) in _COLUMNS.items():
            if name != "pair":
                setattr(self, name, np.array(state[name], dtype=kind).reshape(-1, *shape))
        self.scatter = np.array(state["scatter"], dtype=float)
