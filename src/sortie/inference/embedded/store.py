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

    def write(self, layer: int, slots_T: Tensor, k_TKH: Tensor, v_TKH: Tensor) -> None:
        """File the keys and values of a step's tokens."""
        keys, values = self.kv[layer].unbind(0)
        keys.index_copy_(1, slots_T, k_TKH.transpose(0, 1))
        values.index_copy_(1, slots_T, v_TKH.transpose(0, 1))

    def read(self, layer: int, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the slots, [K, *slots, H] each."""
        kv = self.kv[layer].index_select(2, slots.flatten()).unflatten(2, slots.shape)
        return kv[0], kv[1]

    def read_all(self, slots: Tensor) -> Tensor:
        """Keys and values of the slots in every layer, [L, 2, K, *slots, H]."""
        kv: Tensor = self.kv.index_select(3, slots.flatten()).unflatten(3, slots.shape)
        return kv

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

    def write(self, layer: int, places_R: Tensor, k_RKH: Tensor, v_RKH: Tensor) -> None:
        """Add the newest token of every row; `places_R` counts through all columns of all rows."""
        if self._tails is not None:
            keys, values = self._tails[layer].flatten(2, 3).unbind(0)
            keys.index_copy_(1, places_R, k_RKH.transpose(0, 1))
            values.index_copy_(1, places_R, v_RKH.transpose(0, 1))

    def tails(self, layer: int, columns: int) -> tuple[Tensor, Tensor]:
        """[K, R, columns, H] each."""
        if self._tails is None:
            return self.store.read(layer, self.plan.tails_RP[:, :columns])
        keys, values = self._tails[layer, :, :, :, :columns].unbind(0)
        return keys, values

    def shared(self, layer: int) -> tuple[Tensor, Tensor]:
        """[K, J, S, H] each."""
        assert self.plan.shared is not None
        if self._shared is None:
            return self.store.read(layer, self.plan.shared.slots)
        keys, values = self._shared[layer].unbind(0)
        return keys, values
