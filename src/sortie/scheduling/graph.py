"""The dual-relation graph, built as environments, tasks and rollouts arrive.

Environment relation: environments with like tools and descriptions are of one family. Pattern relation: tasks with like
given features (or text, where none are given) share a hint, rollouts with like features a pattern; hints and patterns
are likened by how near their centres are. Pairs attach to these factor nodes only, so the graph stays sparse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sortie.core.group import EnvironmentRecord, Features, TaskRecord
from sortie.scheduling.clusters import Clusters, Vectors
from sortie.scheduling.factors import Factors, Floats, Ints
from sortie.scheduling.pattern import as_vectors, text_vectors

FAMILIES = 16
CELLS = 4096
"""Most cells; when they are used up, what is new in an environment shares one cell of its own."""
NO_HINT = -1
"""The hint of such a shared cell."""


class Graph:
    """Factor nodes and who hangs on them."""

    def __init__(self, *, max_patterns: int) -> None:
        self.environment_row: dict[str, int] = {}
        self.families = Clusters(FAMILIES, radius=1.0)
        self.given = Clusters(max_patterns, standardise=True)
        self.text = Clusters(max_patterns)
        self.behaviour = Clusters(max_patterns)
        self._records: dict[str, EnvironmentRecord] = {}
        self._family: list[int] = []
        self._hints: dict[tuple[str, int], int] = {}
        self._cells: dict[tuple[int, int], int] = {}

    @property
    def hints(self) -> int:
        """Hints so far."""
        return max(len(self._hints), 1)

    @property
    def patterns(self) -> int:
        """Patterns so far; pattern 0 is that of rollouts without features."""
        return 1 + len(self.behaviour)

    def describe(self, records: Sequence[EnvironmentRecord]) -> None:
        """Make environments known with their tools and descriptions."""
        self._records.update((record.name, record) for record in records)
        self.environment_rows([record.name for record in records])

    def environment_rows(self, names: Sequence[str]) -> list[int]:
        """Row of each environment; new ones join the family they are like."""
        new = [name for name in dict.fromkeys(names) if name not in self.environment_row]
        if new:
            described = [self._records.get(name, EnvironmentRecord(name=name)) for name in new]
            self._family += self.families.assign(_environment_vectors(described)).tolist()
            first = len(self.environment_row)
            self.environment_row.update((name, first + i) for i, name in enumerate(new))
        return [self.environment_row[name] for name in names]

    def place(self, records: Sequence[TaskRecord]) -> tuple[Ints, Ints, Ints]:
        """Environment, hint and cell of each task."""
        environment = np.array(self.environment_rows([record.environment for record in records]), dtype=np.int64)
        hint = np.zeros(len(records), dtype=np.int64)
        given = np.array([record.features is not None for record in records], dtype=bool)
        for kind, rows in (("given", np.flatnonzero(given)), ("text", np.flatnonzero(~given))):
            if len(rows):
                cluster = self._cluster(kind, [records[row] for row in rows.tolist()])
                numbers, inverse = np.unique(cluster, return_inverse=True)
                nodes = [self._hints.setdefault((kind, number), len(self._hints)) for number in numbers.tolist()]
                hint[rows] = np.array(nodes, dtype=np.int64)[inverse]
        return environment, hint, self.cells_of(environment, hint)

    def cells_of(self, environment: Ints, hint: Ints) -> Ints:
        """Cell of each (environment, hint)."""
        width = len(self._hints) + 1
        codes, inverse = np.unique(environment * width + hint, return_inverse=True)
        cells = [self._cell(int(code) // width, int(code) % width) for code in codes]
        return np.array(cells, dtype=np.int64)[inverse]

    def behaved(self, features: Sequence[Features]) -> Ints:
        """Pattern of rollouts with these features."""
        return 1 + self.behaviour.assign(as_vectors(features))

    def patterns_of(self, features: Sequence[Features]) -> list[int]:
        """The same, without making new ones."""
        if not len(self.behaviour):
            return [0] * len(features)
        return [1 + int(n) for n in self.behaviour.assign(as_vectors(features), grow=False)]

    def factors(self) -> Factors:
        """The graph as arrays."""
        hints = np.eye(self.hints)
        for kind, clusters in (("given", self.given), ("text", self.text)):
            own = [(node, number) for (name, number), node in self._hints.items() if name == kind]
            if own:
                nodes, numbers = np.array(own).T
                hints[np.ix_(nodes, nodes)] = clusters.likeness()[np.ix_(numbers, numbers)]
        patterns = np.eye(self.patterns)
        patterns[1:, 1:] = self.behaviour.likeness()
        owners = np.array([environment for environment, _ in self._cells] or [0], dtype=np.int64)
        return Factors(
            np.array(self._family or [0], dtype=np.int64), owners, max(len(self.families), 1), hints, patterns
        )

    def _cluster(self, kind: str, records: Sequence[TaskRecord]) -> NDArray[np.int64]:
        if kind == "given":
            return self.given.assign(as_vectors([record.features or () for record in records]))
        return self.text.assign(text_vectors([record.text for record in records]))

    def _cell(self, environment: int, hint: int) -> int:
        key = environment, hint
        if key not in self._cells and len(self._cells) >= CELLS:
            key = environment, NO_HINT
        return self._cells.setdefault(key, len(self._cells))

    def state_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "environments": list(self.environment_row),
            "family": list(self._family),
            "hints": [[kind, number] for kind, number in self._hints],
            "cells": [list(cell) for cell in self._cells],
            "clusters": [clusters.state_dict() for clusters in self._clusters()],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a saved graph; environments it does not know follow, as they are described."""
        later = [name for name in self.environment_row if name not in state["environments"]]
        self.environment_row = {name: i for i, name in enumerate(state["environments"])}
        self._family = [int(family) for family in state["family"]]
        self._hints = {(str(kind), int(number)): i for i, (kind, number) in enumerate(state["hints"])}
        self._cells = {(int(e), int(h)): i for i, (e, h) in enumerate(state["cells"])}
        for clusters, saved in zip(self._clusters(), state["clusters"], strict=True):
            clusters.load_state_dict(saved)
        self.environment_rows(later)

    def _clusters(self) -> tuple[Clusters, ...]:
        return self.families, self.given, self.text, self.behaviour


def _environment_vectors(records: Sequence[EnvironmentRecord]) -> Vectors:
    """Tools as shares, and the description's text features, side by side; each part of length 1 or nothing."""
    tools = as_vectors([{f"tool:{tool}": 1.0 for tool in record.tools} for record in records])
    lengths = np.maximum(np.linalg.norm(tools, axis=1, keepdims=True), 1e-9)
    described = text_vectors([record.description for record in records])
    described[[not record.description for record in records]] = 0.0
    return np.hstack([tools / lengths, described]).astype(np.float32)


def mixture(hint: Ints, pattern: Ints, count: Floats, hints: int, patterns: int) -> Floats:
    """Which patterns a hint's tasks are expected to show [H, Q]: shares seen, shrunk to those of all by one group."""
    if not len(hint):
        first = np.zeros((hints, patterns))
        first[:, 0] = 1.0
        return first
    seen = np.bincount(hint * patterns + pattern, count, hints * patterns).reshape(hints, patterns)
    overall = seen.sum(axis=0) / max(float(seen.sum()), 1e-9)
    return np.asarray((seen + overall) / (seen.sum(axis=1, keepdims=True) + 1.0))
