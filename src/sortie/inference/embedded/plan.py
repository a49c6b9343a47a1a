"""Which keys each decoding row reads: a prefix that it shares with others, read once for all of them, then its tail.

The plan changes only when rows join or leave; between two changes every tail grows by one slot a step.

Shape letters: R rows, P columns of tails, J groups of rows that share a prefix, M rows of the largest group, S tokens
of the longest shared prefix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

MIN_SHARED = 16
"""Tokens below which sharing costs more in calls than it saves in reads."""
ROOM = 64
"""Tokens by which tails may grow before the plan is made anew."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Prefixes of groups of rows, padded to one length, and who asks for them."""

    slots: Tensor
    """[J, S]."""
    blank: Tensor
    """True where a prefix is shorter than the longest, [J, S]."""
    rows: Tensor
    """Rows of each group, padded with row 0, [J, M]."""
    place: Tensor
    """Where each row stands in `rows`, flattened, [R]; 0 for a row in no group."""
    alone: Tensor
    """True for a row in no group, [R]."""


class DecodePlan:
    """Shared prefixes and tails of a set of rows. `slots_of_rows` holds, per row, the slots of all its tokens."""

    def __init__(self, slots_of_rows: Sequence[Sequence[int]], device: torch.device) -> None:
        self.device = device
        groups = shared_prefixes(slots_of_rows)
        taken = [0] * len(slots_of_rows)
        for rows, length in groups:
            for row in rows:
                taken[row] = length
        tails = [slots[start:] for slots, start in zip(slots_of_rows, taken, strict=True)]
        self.lengths = [len(tail) for tail in tails]
        self.columns = max(self.lengths) + ROOM
        self.tails_RP = padded(tails, self.columns, device)
        """Slots of each row's own tail, with room to grow, padded with slot 0."""
        self.shared = self._share(groups, slots_of_rows) if groups else None

    @property
    def full(self) -> bool:
        """Whether the longest tail has no room for another token."""
        return max(self.lengths) == self.columns

    def append(self, slots: Sequence[int]) -> None:
        """One more slot per row."""
        at = torch.tensor([self.lengths], device=self.device).T
        self.tails_RP.scatter_(1, at, torch.tensor([slots], device=self.device).T)
        self.lengths = [n + 1 for n in self.lengths]

    def blank_RP(self) -> Tensor:
        """True beyond the end of a tail, over the columns in use."""
        ends = torch.tensor(self.lengths, device=self.device).unsqueeze(1)
        return torch.arange(max(self.lengths), device=self.device).unsqueeze(0) >= ends

    def _share(self, groups: list[tuple[list[int], int]], slots: Sequence[Sequence[int]]) -> Shared:
        longest = max(length for _, length in groups)
        largest = max(len(rows) for rows, _ in groups)
        place = [0] * len(slots)
        alone = [True] * len(slots)
        for j, (rows, _) in enumerate(groups):
            for m, row in enumerate(rows):
                place[row], alone[row] = j * largest + m, False
        lengths = torch.tensor([length for _, length in groups], device=self.device).unsqueeze(1)
        return Shared(
            slots=padded([slots[rows[0]][:length] for rows, length in groups], longest, self.device),
            blank=torch.arange(longest, device=self.device).unsqueeze(0) >= lengths,
            rows=padded([rows for rows, _ in groups], largest, self.device),
            place=torch.tensor(place, device=self.device),
            alone=torch.tensor(alone, device=self.device),
        )


def shared_prefixes(slots_of_rows: Sequence[Sequence[int]]) -> list[tuple[list[int], int]]:
    """Disjoint groups of rows with the length of what each shares, chosen so that most reads are saved.

    A group of n rows that begin alike for m tokens saves (n - 1) m reads. Groups within groups are not made: of a large
    group and the smaller ones inside it, the better choice is taken.
    """
    order = sorted(range(len(slots_of_rows)), key=lambda row: list(slots_of_rows[row]))
    alike = [_common(slots_of_rows[a], slots_of_rows[b]) for a, b in pairwise(order)]

    def best(first: int, last: int) -> tuple[int, list[tuple[list[int], int]]]:
        """Reads saved among rows first..last (inclusive) of the order, and the groups that save them."""
        if first == last:
            return 0, []
        common = min(alike[first:last])
        cuts = [first - 1, *(i for i in range(first, last) if alike[i] == common), last]
        parts = [best(a + 1, b) for a, b in pairwise(cuts)]
        saved = sum(part for part, _ in parts)
        if common >= MIN_SHARED and (last - first) * common >= saved:
            return (last - first) * common, [(order[first : last + 1], common)]
        return saved, [group for _, groups in parts for group in groups]

    return best(0, len(order) - 1)[1]


def padded(lists: Sequence[Sequence[int]], columns: int, device: torch.device) -> Tensor:
    """The lists as rows of one integer matrix, filled up with 0."""
    return torch.tensor([[*one, *[0] * (columns - len(one))] for one in lists], device=device)


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading slots are the same."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low
