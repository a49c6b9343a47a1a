"""How to write x W^T for the few rows of a decoding batch: three spellings of one product, in GFLOP/s.

`rows` is x W^T as torch.nn.functional.linear computes it, `outputs` is W x^T over 3072 rows of W at a time, `packed` is
oneDNN's product over weights laid out in advance, where this machine has it. The choice is in models/linear.py.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product as product_of

import torch
from torch.nn import functional as F

from benchmarks.report import arguments, interleaved, publish
from sortie.models.linear import can_pack, product

SHAPES = {"qkv": (960, 576), "gate_up": (3072, 576), "down": (576, 1536), "head": (49152, 576)}
"""Outputs and inputs of SmolLM2-135M's linear layers."""
DTYPES = (torch.bfloat16, torch.float32)
BATCHES = (1, 8, 32, 64)
COLD_BYTES = 100_000_000
"""Weights that take turns, so that none is in the cache when its turn comes."""


def works(outputs: int, inputs: int, rows: int, dtype: torch.dtype) -> dict[str, Callable[[], object]]:
    """The spellings over weights that take turns."""
    copies = copies_of(outputs, inputs, dtype)
    weights = [torch.randn(outputs, inputs).to(dtype) for _ in range(copies)]
    x = torch.randn(rows, inputs).to(dtype)
    found: dict[str, Callable[[], object]] = {
        "rows": lambda: [F.linear(x, w) for w in weights],
        "outputs": lambda: [product(x, w) for w in weights],
    }
    if can_pack(x.device):
        packed = [torch.ops.mkldnn._reorder_linear_weight(w) for w in weights]
        found["packed"] = lambda: [torch.ops.mkldnn._linear_pointwise(x, w, None, "none", [], "") for w in packed]
    return found


def copies_of(outputs: int, inputs: int, dtype: torch.dtype) -> int:
    """How many weights of that shape are more than the cache holds."""
    return max(1, COLD_BYTES // (dtype.itemsize * outputs * inputs))


def main() -> None:
    """Measure every shape at several batch sizes."""
    options = arguments(__doc__ or "")
    rows = []
    with torch.inference_mode():
        for dtype, (name, (outputs, inputs)), batch in product_of(DTYPES, SHAPES.items(), BATCHES):
            copies = copies_of(outputs, inputs, dtype)
            seconds = interleaved(works(outputs, inputs, batch, dtype), repeats=3 if options.quick else 15)
            gflops = {k: copies * 2e-9 * outputs * inputs * batch / s for k, s in seconds.items()}
            rows.append({"dtype": str(dtype).removeprefix("torch."), "layer": name, "batch": batch, **gflops})
    publish("products", rows, [], as_json=options.json)


if __name__ == "__main__":
    main()
