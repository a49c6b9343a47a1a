"""Rows that begin alike are computed once: a pack is a trie of token segments, laid flat.

Siblings share their prompt and groups of one environment its preamble; each distinct token is one position of the pack,
seen by every row through it. Attention follows the path to the root, so values and gradients equal the flat rows'.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sortie.training.attention import plan_of, planned_attention

MIN_SHARED = 8
"""Tokens below which a shared segment costs more in calls than it saves in products."""

PIECE = 256
"""Tokens beyond which a segment's attention to itself is computed in pieces, since half of it is masked."""

Tokens = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens of one edge of the trie. `path` lists the segments above it, root first."""

    tokens: Tokens
    depth: int
    """Position of its first token in every row through it."""
    path: tuple[int, ...]


@dataclass(slots=True)
class Pack:
    """One forward pass: segments in order, and where each row's tokens are."""

    segments: list[Segment] = field(default_factory=list)
    rows: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Row number -> its segments, root first."""

    @property
    def tokens_T(self) -> Tensor:
        """All tokens, segment after segment."""
        return torch.from_numpy(np.concatenate([s.tokens for s in self.segments]))

    @property
    def positions_T(self) -> Tensor:
        """Each token's position in its rows."""
        return torch.cat([torch.arange(s.depth, s.depth + len(s.tokens)) for s in self.segments])

    @property
    def starts(self) -> list[int]:
        """Place of each segment's first token, and behind them the number of tokens."""
        return np.cumsum([0, *(len(s.tokens) for s in self.segments)]).tolist()  # type: ignore[no-any-return]

    @property
    def ends(self) -> list[int]:
        """Where everything below each segment ends: segments lie in depth-first order."""
        last = list(range(len(self.segments)))
        for i, segment in enumerate(self.segments):
            for above in segment.path:
                last[above] = i
        return [self.starts[i + 1] for i in last]

    def places(self, row: int) -> Tokens:
        """Index in the pack of each of a row's tokens."""
        spans = ((self.starts[i], len(self.segments[i].tokens)) for i in self.rows[row])
        return np.concatenate([np.arange(start, start + length) for start, length in spans])


def packs_of(rows: Sequence[Tokens], pack_tokens: int) -> list[Pack]:
    """Spread rows over packs of at most `pack_tokens` distinct tokens each; rows that begin alike stay together."""
    order = sorted(range(len(rows)), key=lambda i: rows[i].tolist())
    bins: list[list[int]] = []
    size = 0
    for previous, row in zip([None, *order], order, strict=False):
        new = len(rows[row]) - (0 if previous is None else common_prefix(rows[previous], rows[row]))
        if not bins or size + new > pack_tokens:
            bins.append([])
            size, new = 0, len(rows[row])
        bins[-1].append(row)
        size += new
    return [_pack(rows, members) for members in bins]


def common_prefix(a: Tokens, b: Tokens) -> int:
    """Number of leading tokens that agree."""
    n = min(len(a), len(b))
    differs = np.flatnonzero(a[:n] != b[:n])
    return int(differs[0]) if len(differs) else n


def _pack(rows: Sequence[Tokens], members: list[int]) -> Pack:
    pack = Pack()
    _grow(pack, rows, members, 0, 0, ())
    return pack


def _grow(pack: Pack, rows: Sequence[Tokens], members: list[int], depth: int, at: int, path: tuple[int, ...]) -> None:
    """Add the rows below `path`, which spells their first `depth` tokens; they agree on the first `at`."""
    groups: dict[int, list[int]] = {}
    for row in members:
        if len(rows[row]) == at:
            pack.rows[row] = path if depth == at else (*path, _add(pack, rows[row][depth:], depth, path))
        else:
            groups.setdefault(int(rows[row][at]), []).append(row)
    for group in groups.values():
        first = rows[group[0]]
        end = min(common_prefix(first, rows[row]) for row in group)
        if len(group) > 1 and end - depth < MIN_SHARED:  # too little yet: see whether parts of the group share more
            _grow(pack, rows, group, depth, end, path)
        else:
            _grow(pack, rows, group, end, end, (*path, _add(pack, first[depth:end], depth, path)))


def _add(pack: Pack, tokens: Tokens, depth: int, path: tuple[int, ...]) -> int:
    pack.segments.append(Segment(tokens, depth, path))
    return len(pack.segments) - 1


class TrieAttend:
    """Attention over a pack: each token sees its own segment causally and everything above it."""

    def __init__(self, pack: Pack, device: torch.device) -> None:
        starts, lengths, ends = [], [], []
        for start, segment, end in zip(pack.starts[:-1], pack.segments, pack.ends, strict=True):
            cuts = np.linspace(0, len(segment.tokens), math.ceil(len(segment.tokens) / PIECE) + 1).astype(int).tolist()
            for cut, following in itertools.pairwise(cuts):
                starts.append(start + cut)
                lengths.append(following - cut)
                ends.append(end)
        self.plan = plan_of(starts, lengths, ends, device)

    def __call__(self, layer: int, q_TNH: Tensor, k_TKH: Tensor, v_TKH: Tensor) -> Tensor:
        return planned_attention(q_TNH, k_TKH, v_TKH, self.plan)
