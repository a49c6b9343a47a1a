"""Where pairs sit among the factors of the model, and what was observed of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EXPOSURES = 4
"""Kinds of training a pair may have gained from: of its environment, its hint, its pattern, and anywhere."""


@dataclass(frozen=True, slots=True)
class Factors:
    """The two relations as a sparse graph: a pair hangs on a cell, which hangs on an environment; and on a hint and a
    pattern. Environments hang on families."""

    family: Ints
    """Of each environment [E]."""
    cell_environment: Ints
    """Of each cell [C]."""
    families: int
    hint_likeness: Floats
    """Likeness of the hints [H, H], 1 on the diagonal."""
    pattern_likeness: Floats
    """Likeness of the patterns [Q, Q]. Pattern 0 is that of rollouts that left no features."""

    @property
    def hints(self) -> int:
        """Number of hints, H."""
        return len(self.hint_likeness)

    @property
    def patterns(self) -> int:
        """Number of patterns, Q."""
        return len(self.pattern_likeness)

    @property
    def dense(self) -> int:
        """Number of crossed factors D: level, families, hints, patterns, exposures."""
        return 1 + self.families + self.hints + self.patterns + EXPOSURES

    @property
    def first_hint(self) -> int:
        """Column of the first hint among the crossed factors."""
        return 1 + self.families

    @property
    def first_pattern(self) -> int:
        """Column of the first pattern."""
        return 1 + self.families + self.hints

    @property
    def exposures(self) -> slice:
        """Columns of the exposures."""
        return slice(self.dense - EXPOSURES, self.dense)

    def columns(self, cell: Ints, hint: Ints, pattern: Ints) -> Ints:
        """Crossed factors of rows [N, 4]: level, family, hint, pattern."""
        family = self.family[self.cell_environment[cell]]
        zero = np.zeros_like(family)
        return np.stack([zero, 1 + family, self.first_hint + hint, self.first_pattern + pattern], axis=1)


@dataclass(frozen=True, slots=True)
class Observations:
    """What rollouts said of the logits of pairs, one row per pair [N]: value = logit then + N(0, 1 / precision)."""

    cell: Ints
    hint: Ints
    pattern: Ints
    precision: Floats
    value: Floats
    exposure: Floats
    """Training that the pair had gained from by then, by kind [N, 4]."""
    scatter: Floats
    """Within-pair scatter of (exposure, value) over repeated visits, summed over pairs [5, 5]."""
