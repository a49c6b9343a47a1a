"""The least time a decoding step can take here: every byte it must read, at the speed this machine reads memory."""

from __future__ import annotations

import time

import torch

from sortie.models.config import DecoderConfig
from sortie.models.lora import projection_shapes

PROBE_BYTES = 512 * 2**20
"""Far more than any cache holds."""
DTYPES = {"bf16": 2, "fp32": 4}
"""Bytes of one number."""


def read_bandwidth(rounds: int = 5) -> float:
    """Bytes per second, all threads reading: the best of `rounds` sums over memory that no cache holds."""
    memory = torch.ones(PROBE_BYTES // 4)
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        memory.sum()
        best = min(best, time.perf_counter() - started)
    return PROBE_BYTES / best


def weight_bytes(config: DecoderConfig, dtype: str) -> float:
    """Weights that a step reads: all layers and the head. Of the input embeddings it reads a row per token: nothing."""
    layer = sum(outputs * inputs for outputs, inputs in projection_shapes(config).values()) + 2 * config.hidden
    return DTYPES[dtype] * (config.layers * layer + config.hidden * (config.vocab + 1))


def adapter_bytes(config: DecoderConfig, dtype: str, rank: int) -> float:
    """A and B of all projections."""
    sizes = sum(rank * (outputs + inputs) for outputs, inputs in projection_shapes(config).values())
    return DTYPES[dtype] * config.layers * sizes


def kv_bytes(config: DecoderConfig, dtype: str, batch: int, context: float) -> float:
    """Keys and values of `batch` rows of `context` tokens on average."""
    return DTYPES[dtype] / 4 * config.kv_bytes_per_token * batch * context
