"""Keys and values of every slot, and the contiguous copies that decoding rows read.

Shape letters: L layers, K key heads, C slots, H head size; R, P, J and S as in the plan.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sortie.inference.embedded.plan import DecodePlan
from sortie.models.decoder import Decoder


class KVStore:
    """Keys and values, [L, 2, K, C, H]. Whatever is read beyond what was written is slot 0, which is always finite."""

    def __init__(self, decoder: Decoder, slots: int) -> None:
        c = decoder.config
        shape = (c.layers, 2, c.kv_heads, slots, c.head_dim)
        self.kv = torch.empty(shape, dtype=decoder.dtype, device=decoder.device)
        self.kv[:, :, :, 0] = 0

    def write(self, layer: int, slots_T: Tensor, kv_2KTH: Tensor) -> None:
        """File the keys and values of a step's tokens."""
        self.kv[layer].index_copy_(2, slots_T, kv_2KTH)

    def read(self, layer: int, slots: Tensor) -> Tensor:
        """Keys and values of the slots, [2, K, *slots, H]."""
        kv: Tensor = self.kv[layer].index_select(2, slots.flatten()).unflatten(2, slots.shape)
        return kv

    def read_all(self, slots: Tensor) -> list[Tensor]:
        """The same for every layer: one tensor each, small enough for the allocator to keep for the next time."""
        return [self.read(layer, slots) for layer in range(len(self.kv))]

    def bytes_of(self, slots: int) -> int:
        """Memory of that many slots in every layer."""
        return self.kv[:, :, :, 0].numel() * self.kv.itemsize * slots


class RowCache:
    """What the rows of one plan read, laid out row after row, so that no step has to gather it.

    It holds a second copy, at most `limit` bytes of it; where that is too little, each layer of each step gathers from
    the store instead.
    """

    def __init__(self, store: KVStore, plan: DecodePlan, limit: int) -> None:
        self.store = store
        self.plan = plan
        shared_slots = plan.shared.slots.numel() if plan.shared else 0
        held = store.bytes_of(plan.tails_RP.numel() + shared_slots) <= limit
        self._tails = store.read_all(plan.tails_RP) if held else None
        self._shared = store.read_all(plan.shared.slots) if held and plan.shared else None

    def write(self, layer: int, places_R: Tensor, kv_2KRH: Tensor) -> None:
        """Add the newest token of every row; `places_R` counts through all columns of all rows."""
        if self._tails is not None:
            self._tails[layer].view(*kv_2KRH.shape[:2], -1, kv_2KRH.shape[-1]).index_copy_(2, places_R, kv_2KRH)

    def tails(self, layer: int, columns: int) -> Tensor:
        """Keys and values, [2, K, R, columns, H]."""
        if self._tails is None:
            return self.store.read(layer, self.plan.tails_RP[:, :columns])
        return self._tails[layer][:, :, :, :columns]

    def shared(self, layer: int) -> Tensor:
        """Keys and values, [2, K, J, S, H]."""
        assert self.plan.shared is not None
        return self.store.read(layer, self.plan.shared.slots) if self._shared is None else self._shared[layer]
