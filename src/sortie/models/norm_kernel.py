"""The code that Numba compiles for norm.py; a module of its own, as Numba is imported with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba as nb
import numpy as np
from numba.core import cgutils
from numba.extending import intrinsic

SIGNATURE = "void(int64,int64,int64,int64,int64,int64,int64,float32,boolean)"


def kernel() -> Callable[..., None]:
    """`_add_norm`, compiled or read from disk."""
    # Sums may be taken in vector lanes. Products and sums are not contracted: torch rounds each.
    options: dict[str, Any] = {"fastmath": {"reassoc", "nsz"}, "nogil": True, "error_model": "numpy"}
    try:
        compiled = nb.njit(SIGNATURE, cache=True, **options)(_add_norm)
    except RuntimeError:  # neither beside the source nor in the user's cache can anything be written
        compiled = nb.njit(SIGNATURE, **options)(_add_norm)
    made: Callable[..., None] = compiled
    return made


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(_: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return nb.types.voidptr(nb.types.int64), codegen


@nb.njit(inline="always")  # type: ignore[untyped-decorator]
def _read(address: int, at: int, bits: Any, half: bool) -> None:
    """Take so many numbers as lie from `at` on; bfloat16 is the upper half of a float32."""
    n = bits.shape[0]
    if half:
        source_16 = nb.carray(_pointer(address + 2 * at), (n,), np.uint16)
        for j in range(n):
            bits[j] = np.uint32(source_16[j]) << np.uint32(16)
    else:
        source_32 = nb.carray(_pointer(address + 4 * at), (n,), np.uint32)
        for j in range(n):
            bits[j] = source_32[j]


@nb.njit(inline="always")  # type: ignore[untyped-decorator]
def _write(bits: Any, address: int, at: int, half: bool) -> None:
    """Put them there; bfloat16 rounded to nearest, ties to even."""
    n = bits.shape[0]
    if half:
        target_16 = nb.carray(_pointer(address + 2 * at), (n,), np.uint16)
        for j in range(n):
            b = bits[j]
            target_16[j] = np.uint16((b + np.uint32(0x7FFF) + ((b >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16))
    else:
        target_32 = nb.carray(_pointer(address + 4 * at), (n,), np.uint32)
        for j in range(n):
            target_32[j] = bits[j]


def _add_norm(
    x: int, delta: int, weight: int, total: int, out: int, rows: int, width: int, eps: float, half: bool
) -> None:
    """Addresses of x, delta (0: none) and weight; of where sum and norm go, all [rows, width] but the weight."""
    a_bits, b_bits, w_bits = np.empty(width, np.uint32), np.empty(width, np.uint32), np.empty(width, np.uint32)
    a, b, w = a_bits.view(np.float32), b_bits.view(np.float32), w_bits.view(np.float32)
    _read(weight, 0, w_bits, half)
    for row in range(rows):
        at = row * width
        _read(x, at, a_bits, half)
        if delta:
            _read(delta, at, b_bits, half)
            for j in range(width):
                a[j] += b[j]
            _write(a_bits, total, at, half)
            _read(total, at, a_bits, half)
        squares = np.float32(0)
        for j in range(width):
            squares += a[j] * a[j]
        factor = np.float32(1) / np.sqrt(squares / np.float32(width) + eps)
        for j in range(width):
            a[j] = a[j] * factor * w[j]
        _write(a_bits, out, at, half)
