"""One pool of OpenMP workers at a time.

GNU OpenMP gives every thread that computes a pool of its own. While there are more workers in all pools than cores, no
worker waits for its next piece of work awake, and waking one costs more than a decoding step's small operations: a step
takes twice as long. So whoever has finished computing on a thread ends that thread's pool. The next piece of work makes
it anew within a tenth of a millisecond.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_HARD = 2
"""`omp_pause_hard` of the OpenMP 5.0 API (section 3.2.44): give everything back."""


@contextmanager
def passing_pool() -> Iterator[None]:
    """Compute inside; afterwards this thread's workers are gone."""
    try:
        yield
    finally:
        end_pool()


def end_pool() -> None:
    """End the calling thread's workers. Where torch was built with another OpenMP, or none, it does nothing."""
    pause = _pause()
    if pause is not None:
        pause(_HARD)


@cache
def _pause() -> Any:
    import torch  # noqa: F401 - it brings the OpenMP library

    return getattr(ctypes.CDLL(None), "omp_pause_resource_all", None)
