"""Which keys each decoding row reads in one step, arranged so that shared prefixes are read once.

Rows whose slot lists begin alike share a `Span`: their queries are multiplied with its keys together. What is left of
each row is its own tail, padded to the longest. The plan changes only when rows join or leave; tails grow in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

MIN_SPAN = 16
"""Tokens below which sharing costs more in calls than it saves in reads."""


@dataclass(frozen=True, slots=True)
class Span:
    """Rows first..last (exclusive) of the plan's order all read these slots."""

    first: int
    last: int
    column: int
    """Where its scores start."""
    slots: Tensor


class DecodePlan:
    """Spans and tails of a set of rows. `order` lists the rows as the plan arranges them."""

    def __init__(self, slots_of_rows: Sequence[Sequence[int]], device: torch.device) -> None:
        self.order: list[int] = []
        self.spans: list[Span] = []
        tails: list[Sequence[int]] = []
        self._device = device
        self._arrange(list(range(len(slots_of_rows))), slots_of_rows, 0, 0, tails)
        self.shared = max((s.column + len(s.slots) for s in self.spans), default=0)
        """Columns taken by spans; tails come after."""
        self.lengths = [len(tail) for tail in tails]
        self._tails = torch.zeros(len(tails), max(self.lengths, default=0) + 32, dtype=torch.int64)
        for row, tail in enumerate(tails):
            self._tails[row, : len(tail)] = torch.tensor(tail, dtype=torch.int64)
        self._fill = self._shared_mask(len(tails))

    def append(self, slots: Sequence[int]) -> None:
        """One more slot per row, in plan order."""
        if max(self.lengths) == self._tails.shape[1]:
            self._tails = torch.nn.functional.pad(self._tails, (0, self._tails.shape[1]))
        rows = torch.arange(len(slots))
        self._tails[rows, torch.tensor(self.lengths)] = torch.tensor(slots)
        self.lengths = [n + 1 for n in self.lengths]

    @property
    def tails_RP(self) -> Tensor:
        """Slots of each row's own tail, padded with slot 0."""
        return self._tails[:, : max(self.lengths)].to(self._device)

    @property
    def blank_RS(self) -> Tensor:
        """True where a row has no key: other rows' spans, and padding of tails."""
        tails = torch.arange(max(self.lengths)).unsqueeze(0) >= torch.tensor(self.lengths).unsqueeze(1)
        return torch.cat((self._fill, tails), dim=1).to(self._device)

    def _arrange(
        self, rows: list[int], slots: Sequence[Sequence[int]], taken: int, at: int, tails: list[Sequence[int]]
    ) -> None:
        """Place rows that agree before `at`, of which spans already cover the first `taken` slots."""
        groups: dict[int, list[int]] = {}
        for row in rows:
            groups.setdefault(slots[row][at], []).append(row)
        for group in groups.values():
            if len(group) == 1:
                self.order += group
                tails.append(slots[group[0]][taken:])
                continue
            end = _common_end([slots[row] for row in group], at)
            if end - taken < MIN_SPAN:  # too little yet: see whether parts of the group share more
                self._arrange(group, slots, taken, end, tails)
                continue
            first = len(self.order)
            shared = torch.tensor(slots[group[0]][taken:end], device=self._device)
            self._arrange(group, slots, end, end, tails)
            self.spans.append(Span(first, len(self.order), taken, shared))

    def _shared_mask(self, rows: int) -> Tensor:
        blank = torch.ones(rows, self.shared, dtype=torch.bool)
        for span in self.spans:
            blank[span.first : span.last, span.column : span.column + len(span.slots)] = False
        return blank


def _common_end(lists: Sequence[Sequence[int]], start: int) -> int:
    """First position from `start` at which the lists differ. They do: the last slot of a row is its own."""
    end = start
    while len({one[end] for one in lists}) == 1:
        end += 1
    return end
