"""One forward pass of the running batch over paged keys and values.

Shape letters as in the decoder, and: R decoding rows, G query heads per key head, S columns of shared spans, P columns
of tails, C cache slots.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass

import torch
from torch import Tensor

from sortie.inference.embedded.plan import DecodePlan
from sortie.models.attention import grouped_attention
from sortie.models.decoder import Decoder, Delta


class KVStore:
    """Keys and values of every layer, [K, C, H] each: head first, so that gathered rows need no transposition."""

    def __init__(self, decoder: Decoder, slots: int) -> None:
        c = decoder.config
        shape = (c.kv_heads, slots, c.head_dim)
        self.keys = [torch.zeros(shape, dtype=decoder.dtype, device=decoder.device) for _ in range(c.layers)]
        self.values = [torch.zeros(shape, dtype=decoder.dtype, device=decoder.device) for _ in range(c.layers)]


@dataclass(frozen=True, slots=True)
class Prefill:
    """Several new tokens of one sequence: the slots of all its tokens so far, new ones last, and who sees whom."""

    new: int
    slots: Tensor
    mask: Tensor

    @classmethod
    def of(cls, new: int, slots: Seq[int], device: torch.device) -> Prefill:
        total = len(slots)
        mask = torch.ones(new, total, dtype=torch.bool, device=device).tril(total - new)
        return cls(new, torch.tensor(slots, device=device), mask)


class PagedAttend:
    """Attention of a step: first one token per decoding row, in plan order, then the prefills."""

    def __init__(self, store: KVStore, written: Tensor, plan: DecodePlan | None, prefills: Seq[Prefill]) -> None:
        self.store = store
        self.written = written
        """Slot of each token of the step."""
        self.plan = plan
        self.rows = len(plan.order) if plan else 0
        self.prefills = prefills
        if plan:
            self.tails_RP = plan.tails_RP
            self.blank_RS = plan.blank_RS

    def __call__(self, layer: int, q_TNH: Tensor, k_TKH: Tensor, v_TKH: Tensor) -> Tensor:
        keys, values = self.store.keys[layer], self.store.values[layer]
        keys.index_copy_(1, self.written, k_TKH.transpose(0, 1))
        values.index_copy_(1, self.written, v_TKH.transpose(0, 1))
        out = [self._decode(q_TNH[: self.rows], keys, values)] if self.rows else []
        start = self.rows
        for p in self.prefills:
            k_SKH = keys.index_select(1, p.slots).transpose(0, 1)
            v_SKH = values.index_select(1, p.slots).transpose(0, 1)
            out.append(grouped_attention(q_TNH[start : start + p.new], k_SKH, v_SKH, p.mask))
            start += p.new
        return torch.cat(out) if len(out) > 1 else out[0]

    def _decode(self, q_RNH: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """One query per row against the spans it shares and its own tail, under one softmax."""
        assert self.plan is not None
        plan, (r, n, h), k = self.plan, q_RNH.shape, keys.shape[0]
        g, p = n // k, self.tails_RP.shape[1]
        q_KRGH = q_RNH.view(r, k, g, h).transpose(0, 1) * h**-0.5
        scores = torch.empty(k, r, g, plan.shared + p, dtype=q_RNH.dtype, device=q_RNH.device)
        flat = self.tails_RP.flatten()
        tail_keys = keys.index_select(1, flat).view(k, r, p, h)
        scores[..., plan.shared :] = q_KRGH @ tail_keys.transpose(2, 3)
        for s in plan.spans:
            queries = q_KRGH[:, s.first : s.last].reshape(k, -1, h)
            part = queries @ keys.index_select(1, s.slots).transpose(1, 2)
            scores[:, s.first : s.last, :, s.column : s.column + len(s.slots)] = part.view(k, -1, g, len(s.slots))
        scores.masked_fill_(self.blank_RS[:, None, :], float("-inf"))
        shares = scores.float().softmax(dim=-1).to(q_RNH.dtype)
        out_KRGH = shares[..., plan.shared :] @ values.index_select(1, flat).view(k, r, p, h)
        for s in plan.spans:
            share = shares[:, s.first : s.last, :, s.column : s.column + len(s.slots)].reshape(k, -1, len(s.slots))
            out_KRGH[:, s.first : s.last] += (share @ values.index_select(1, s.slots)).view(k, -1, g, h)
        return out_KRGH.transpose(0, 1).reshape(r, n, h)


class ModelRunner:
    """Runs the decoder over a step's tokens and returns the logits to draw from."""

    def __init__(self, decoder: Decoder, slots: int) -> None:
        self.decoder = decoder
        self.store = KVStore(decoder, slots)

    def run(self, tokens: Seq[int], positions: Seq[int], attend: PagedAttend, delta: Delta | None) -> Tensor:
        """Logits of the last token of each row and prefill, in the order of the step, [rows + prefills, V]."""
        device = self.decoder.device
        hidden_TD = self.decoder.forward(
            torch.tensor(tokens, device=device), torch.tensor(positions, device=device), attend, delta
        )
        last, at = list(range(attend.rows)), attend.rows
        for p in attend.prefills:
            at += p.new
            last.append(at - 1)
        return self.decoder.logits(hidden_TD[last] if len(last) < len(tokens) else hidden_TD)
