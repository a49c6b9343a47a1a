"""One forward pass of the running batch: which keys its rows hold, what the decoder computes, which logits come out."""

from __future__ import annotations

import torch
from torch import Tensor

from sortie.inference.embedded.attend import Prefill, StepAttend, batches
from sortie.inference.embedded.plan import DecodePlan
from sortie.inference.embedded.sequence import Sequence
from sortie.inference.embedded.store import KVStore, RowCache
from sortie.models.decoder import Decoder, Delta


class ModelRunner:
    """Runs the decoder over a step's tokens. `row_bytes` bounds the second copy of what decoding rows read."""

    def __init__(self, decoder: Decoder, slots: int, row_bytes: int) -> None:
        self.decoder = decoder
        self.store = KVStore(decoder, slots)
        self.row_bytes = row_bytes
        self._rows: RowCache | None = None
        self._planned: list[Sequence] = []

    def arrange(self, running: list[Sequence]) -> list[Sequence]:
        """The sequences in the order of the step: decoding rows, then prompts, those of like length together."""
        prompts = [s for s in running if s.fresh and s.pending]
        return [s for s in running if not s.fresh] + sorted(prompts, key=lambda s: (s.pending, len(s.tokens)))

    def run(self, order: list[Sequence], delta: Delta | None) -> Tensor:
        """Logits after the last token of each sequence, [sequences, V]."""
        device = self.decoder.device
        tokens = [token for s in order for token in s.tokens[s.computed :]]
        positions = [i for s in order for i in range(s.computed, len(s.tokens))]
        hidden_TD = self.decoder.forward(
            torch.tensor(tokens, device=device), torch.tensor(positions, device=device), self._attend(order), delta
        )
        if len(order) < len(tokens):
            ends = torch.tensor([s.pending for s in order], device=device).cumsum(0) - 1
            hidden_TD = hidden_TD.index_select(0, ends)
        return self.decoder.logits(hidden_TD)

    def _attend(self, order: list[Sequence]) -> StepAttend:
        written = [slot for s in order for slot in s.slots[s.computed :]]
        rows = [s for s in order if not s.fresh]
        prompts = order[len(rows) :]
        prefills, start, at = [], len(rows), 0
        for count in batches([(s.pending, len(s.tokens)) for s in prompts]):
            part = prompts[at : at + count]
            new, slots = [s.pending for s in part], [s.slots for s in part]
            prefills.append(Prefill.of(start, new, slots, self.decoder.dtype, self.decoder.device))
            start, at = start + sum(new), at + count
        written_T = torch.tensor(written, device=self.decoder.device)
        return StepAttend(self.store, written_T, self._rows_of(rows), prefills)

    def _rows_of(self, rows: list[Sequence]) -> RowCache | None:
        """The cache of these rows: the last step's, one token longer, or a new one where rows joined or left."""
        if self._rows is not None and rows == self._planned and not self._rows.plan.full:
            self._rows.plan.append([s.slots[-1] for s in rows])
        else:
            self._rows = None  # its memory goes before the next one is made
            if rows:
                plan = DecodePlan([s.slots for s in rows], self.decoder.device)
                self._rows = RowCache(self.store, plan, self.row_bytes)
        self._planned = rows
        return self._rows
