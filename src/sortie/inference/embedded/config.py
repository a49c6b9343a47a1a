"""Settings of the embedded engine."""

from __future__ import annotations

from pydantic import Field

from sortie.core.config import Config


class EngineConfig(Config):
    """How the embedded engine batches, and how much memory it may hold."""

    max_batch: int = Field(64, ge=1)
    """Most sequences decoded together."""
    max_prefill_tokens: int = Field(2048, ge=16)
    """Most prompt tokens computed in one step, unless one prompt alone is longer."""
    kv_memory_mb: int = Field(1024, ge=16)
    """Cap on keys and values; requests wait when it is reached. Decoding rows hold at most as much again, in order."""
    block_size: int = Field(16, ge=1)
    """Tokens per KV block."""
    kept_versions: int = Field(2, ge=1)
    """Policy versions that stay loaded; older ones go when no request is pinned to them."""
