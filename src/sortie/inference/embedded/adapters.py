"""Published policy versions inside the engine. A version stays while it is among the newest or a request needs it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sortie.core.policy import PolicyVersion
from sortie.inference.embedded.sequence import BASE
from sortie.models.decoder import Delta
from sortie.models.lora import FusedLora, Lora, RoutedLora

FEW_ROWS = 24
"""Tokens up to which a low-rank product is faster in fp32, whose calls cost less, than in bf16."""


class ServedLora:
    """A `Delta` that applies one published snapshot: factors laid out for the products of a decoding step."""

    def __init__(self, lora: FusedLora, dtype: torch.dtype) -> None:
        # [inputs, ranks] and [ranks, outputs], as the products read them.
        self._few = {key: (a.float().T.contiguous(), b.float().T.contiguous()) for key, (a, b) in lora.factors.items()}
        self._many = lora.to(dtype)

    def __call__(self, layer: int, linear: str, x: Tensor, y: Tensor) -> Tensor:
        if len(x) > FEW_ROWS or x.device.type != "cpu":
            return self._many(layer, linear, x, y)
        pair = self._few.get((layer, linear))
        return y if pair is None else y.add_((x.float() @ pair[0]) @ pair[1])


class Adapters:
    """Loaded versions by digest, oldest first."""

    def __init__(self, dtype: torch.dtype, kept: int) -> None:
        self.dtype = dtype
        self.kept = kept
        self.loaded: dict[str, tuple[PolicyVersion, ServedLora]] = {}

    def __contains__(self, digest: str) -> bool:
        return digest in self.loaded

    @property
    def names(self) -> str:
        """Loaded versions, for messages."""
        return ", ".join(str(version) for version, _ in self.loaded.values()) or "none"

    def add(self, version: PolicyVersion, lora: Lora) -> None:
        """Load a snapshot. The same digest again only makes it the newest."""
        known = self.loaded.pop(version.digest, None)
        self.loaded[version.digest] = (version, known[1] if known else ServedLora(lora.fuse(), self.dtype))

    def retire(self, busy: set[str]) -> list[str]:
        """Drop old versions that no request needs; returns their digests."""
        per_adapter: dict[str, list[str]] = {}
        for digest, (version, _) in self.loaded.items():
            per_adapter.setdefault(version.adapter, []).append(digest)
        gone = [d for digests in per_adapter.values() for d in digests[: -self.kept] if d not in busy]
        for digest in gone:
            del self.loaded[digest]
        return gone

    def delta(self, owners: Sequence[tuple[str, int]]) -> Delta | None:
        """What the adapters add in a step whose tokens belong, in order, to (version, count) owners."""
        versions = {version for version, _ in owners}
        if versions == {BASE}:
            return None
        if len(versions) == 1:
            return self.loaded[versions.pop()][1]
        rows: dict[str, list[int]] = {}
        at = 0
        for version, count in owners:
            rows.setdefault(version, []).extend(range(at, at + count))
            at += count
        return RoutedLora([(torch.tensor(r), self.loaded[v][1]) for v, r in rows.items() if v != BASE])
