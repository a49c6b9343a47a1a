"""Attention of one engine step: first one token per decoding row, then the prompts.

Shape letters as in the decoder and the plan, and: G query heads per key head, B prompts, Q new tokens of the longest.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from sortie.inference.embedded.plan import padded
from sortie.inference.embedded.store import KVStore, RowCache
from sortie.models.attention import attention_with_mass

PADDING = 2.0
"""Prompts are padded to each other's length while that makes at most so many times the work."""


@dataclass(frozen=True, slots=True)
class Prefill:
    """New tokens of a few prompts, padded to the longest."""

    tokens: Tensor
    """Which of the step's tokens, padded with any, [B, Q]."""
    kept: Tensor
    """Places in `tokens`, flattened, that are no padding, in the order of the step."""
    slots: Tensor
    """Of all their tokens so far, [B, S]."""
    mask: Tensor
    """0 where a query may look, minus infinity elsewhere, [B, Q, S]."""

    @classmethod
    def of(cls, start: int, new: Seq[int], slots: Seq[Seq[int]], dtype: torch.dtype, device: torch.device) -> Prefill:
        """Prompts whose new tokens follow one another from `start`; `slots` are those of all their tokens."""
        longest, widest = max(new), max(map(len, slots))
        starts = [start + sum(new[:b]) for b in range(len(new))]
        tokens = padded([range(at, at + n) for at, n in zip(starts, new, strict=True)], longest, device)
        kept = [b * longest + i for b, n in enumerate(new) for i in range(n)]
        first = torch.tensor([len(s) - n for s, n in zip(slots, new, strict=True)], device=device)
        last_BQ = first[:, None] + torch.arange(longest, device=device)
        looks = torch.arange(widest, device=device) <= last_BQ[:, :, None]
        mask = torch.zeros(looks.shape, dtype=dtype, device=device).masked_fill_(~looks, float("-inf"))
        return cls(tokens, torch.tensor(kept, device=device), padded(slots, widest, device), mask)


def batches(sizes: Seq[tuple[int, int]]) -> list[int]:
    """How many prompts, in order, to compute at once, given (new tokens, all tokens) of each."""
    out: list[int] = []
    real = most = widest = 0
    for new, total in sizes:
        padded_work = (out[-1] + 1) * max(most, new) * max(widest, total) if out else 0
        if out and padded_work <= PADDING * (real + new * total):
            out[-1] += 1
            real, most, widest = real + new * total, max(most, new), max(widest, total)
        else:
            out.append(1)
            real, most, widest = new * total, new, total
    return out


class StepAttend:
    """The `Attend` of one step. `written_T` holds the slot of each of its tokens."""

    def __init__(self, store: KVStore, written_T: Tensor, rows: RowCache | None, prefills: Seq[Prefill]) -> None:
        self.store = store
        self.written_T = written_T
        self.rows = rows
        self.prefills = prefills
        self.count = 0
        """Decoding rows: the first tokens of the step."""
        if rows is not None:
            self.count = len(rows.plan.lengths)
            ends = torch.tensor(rows.plan.lengths, device=written_T.device)
            self._places_R = torch.arange(self.count, device=written_T.device) * rows.plan.columns + ends - 1
            self._columns = max(rows.plan.lengths)
            self._tail_mask = _additive(rows.plan.blank_RP(), store.kv.dtype)
            self._shared_mask = _additive(rows.plan.shared.blank, store.kv.dtype) if rows.plan.shared else None

    def __call__(self, layer: int, q_TNH: Tensor, k_TKH: Tensor, v_TKH: Tensor) -> Tensor:
        kv_2KTH = torch.stack((k_TKH, v_TKH)).transpose(1, 2)
        self.store.write(layer, self.written_T, kv_2KTH)
        out = []
        if self.rows is not None:
            n = self.count
            self.rows.write(layer, self._places_R, kv_2KTH[:, :, :n])
            out.append(self._decode(self.rows, layer, q_TNH[:n]))
        out += [self._prefill(p, layer, q_TNH) for p in self.prefills]
        return torch.cat(out) if len(out) > 1 else out[0]

    def _decode(self, rows: RowCache, layer: int, q_RNH: Tensor) -> Tensor:
        """One query per row. Query heads that share a key head are laid side by side, as so many queries."""
        keys, values = rows.tails(layer, self._columns).unbind(0)
        (r, n, h), k = q_RNH.shape, keys.shape[0]
        q_KRGH = q_RNH.view(r, k, n // k, h).transpose(0, 1)
        if rows.plan.shared is None:
            out_KRGH = F.scaled_dot_product_attention(q_KRGH, keys, values, attn_mask=self._tail_mask)
        else:
            own_KRGH, own_KRG = attention_with_mass(q_KRGH, keys, values, self._tail_mask)
            shared_KRGH, shared_KRG = self._shared(rows, layer, q_KRGH)
            # Two softmaxes over parts of the keys are one over all when each weighs as much as its mass.
            weight = (shared_KRG - own_KRG).sigmoid().unsqueeze(-1)
            out_KRGH = torch.lerp(own_KRGH.float(), shared_KRGH.float(), weight).to(q_RNH.dtype)
        return out_KRGH.transpose(0, 1).reshape(r, n, h)

    def _shared(self, rows: RowCache, layer: int, q_KRGH: Tensor) -> tuple[Tensor, Tensor]:
        """Attention of each row over the prefix of its group, [K, R, G, H], and its mass, -inf for rows in none."""
        shared = rows.plan.shared
        assert shared is not None
        (k, _, g, h), (j, m) = q_KRGH.shape, shared.rows.shape
        asked = q_KRGH.index_select(1, shared.rows.flatten()).view(k, j, m * g, h)
        keys, values = rows.shared(layer).unbind(0)
        out, mass = attention_with_mass(asked, keys, values, self._shared_mask)
        out_KRGH = out.reshape(k, j * m, g, h).index_select(1, shared.place)
        mass_KRG = mass.reshape(k, j * m, g).index_select(1, shared.place)
        return out_KRGH, mass_KRG.masked_fill_(shared.alone[:, None], float("-inf"))

    def _prefill(self, p: Prefill, layer: int, q_TNH: Tensor) -> Tensor:
        keys, values = self.store.read(layer, p.slots).unbind(0)  # [K, B, S, H] each
        (b, q), (n, h), k = p.tokens.shape, q_TNH.shape[1:], keys.shape[0]
        g = n // k
        q_KBQGH = q_TNH.index_select(0, p.tokens.flatten()).view(b, q, k, g, h).permute(2, 0, 3, 1, 4)
        mask = p.mask.repeat(1, g, 1)[None]
        out = F.scaled_dot_product_attention(q_KBQGH.reshape(k, b, g * q, h), keys, values, attn_mask=mask)
        flat = out.view(k, b, g, q, h).permute(1, 3, 0, 2, 4).reshape(b * q, n, h)
        return flat if len(p.kept) == b * q else flat.index_select(0, p.kept)


def _additive(blank: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where there is a key, minus infinity where there is none, [1, rows, 1, columns]."""
    return torch.zeros(blank.shape, dtype=dtype, device=blank.device).masked_fill_(blank, float("-inf"))[None, :, None]
