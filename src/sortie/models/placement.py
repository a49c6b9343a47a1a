"""Putting a model on this machine, with settings as the run file spells them."""

from __future__ import annotations

import ctypes
import platform
import time
from pathlib import Path

import torch

from sortie.core.errors import ConfigError
from sortie.models.decoder import Decoder
from sortie.models.fallback import load_decoder
from sortie.models.threads import passing_pool

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


# Names of glibc's malloc.h, which Python does not export.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def keep_freed_memory() -> None:
    """Have glibc keep what torch frees for the next step, where it would give it back and fault it in again.

    A training pass frees and takes gigabytes; without this a fifth of its time went into page faults. Elsewhere than on
    glibc it does nothing.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(_M_ARENA_MAX, 1)  # other threads' arenas are too small to hold a tensor
    mallopt(_M_MMAP_THRESHOLD, 32 * 2**20)  # the most it accepts
    mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def place(folder: Path, *, dtype: str = "float32", device: str = "cpu", threads: int | None = None) -> Decoder:
    """Load the model in `folder`.

    Raises: ConfigError if the device is not there, UsageError if the folder holds no model.
    """
    keep_freed_memory()
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch asserts where it was built without the backend
        raise ConfigError(f"device {device!r} is not usable here: {str(error).splitlines()[0]}") from None
    with passing_pool():
        return load_decoder(folder, dtype=_DTYPES[dtype], device=device)


def flops_per_second(seconds: float = 0.2) -> float:
    """Floating-point operations this machine's CPU does per second in a product of decoding shape, fp32, measured."""
    x, w = torch.randn(48, 576), torch.randn(3072, 576)
    with passing_pool(), torch.inference_mode():
        torch.nn.functional.linear(x, w)
        started, rounds = time.perf_counter(), 0
        while time.perf_counter() - started < seconds:
            torch.nn.functional.linear(x, w)
            rounds += 1
        return rounds * 2 * 48 * 576 * 3072 / (time.perf_counter() - started)
