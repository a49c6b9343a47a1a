"""How to write x W^T for the few rows of a decoding batch: three spellings of one product, in GFLOP/s.

`rows` is x W^T as torch.nn.functional.linear computes it, `outputs` is W x^T, `parts` is W x^T over 3072 rows of W at a
time. The decoder uses `outputs`, and `parts` for its head (models/decoder.py).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional as F

from benchmarks.report import arguments, interleaved, publish
from sortie.models.decoder import HEAD_ROWS

SHAPES = {"qkv": (960, 576), "gate_up": (3072, 576), "down": (576, 1536), "head": (49152, 576)}
"""Outputs and inputs of SmolLM2-135M's linear layers."""
COLD_BYTES = 100_000_000
"""Weights that take turns, so that none is in the cache when its turn comes."""


def works(outputs: int, inputs: int, rows: int) -> dict[str, Callable[[], object]]:
    """The three spellings over weights that take turns."""
    copies = max(1, COLD_BYTES // (4 * outputs * inputs))
    weights = [torch.randn(outputs, inputs) for _ in range(copies)]
    x = torch.randn(rows, inputs)
    out = torch.empty(outputs, rows)

    def in_parts(w: torch.Tensor) -> None:
        for start in range(0, outputs, HEAD_ROWS):
            torch.mm(w[start : start + HEAD_ROWS], x.T, out=out[start : start + HEAD_ROWS])

    def each(product: Callable[[torch.Tensor], object]) -> Callable[[], object]:
        return lambda: [product(w) for w in weights]

    return {
        "rows": each(lambda w: F.linear(x, w)),
        "outputs": each(lambda w: torch.mm(w, x.T)),
        "parts": each(in_parts),
    }


def main() -> None:
    """Measure every shape at several batch sizes."""
    options = arguments(__doc__ or "")
    rows = []
    with torch.inference_mode():
        for name, (outputs, inputs) in SHAPES.items():
            for batch in (8, 32, 64):
                copies = max(1, COLD_BYTES // (4 * outputs * inputs))
                seconds = interleaved(works(outputs, inputs, batch), repeats=7 if options.quick else 25)
                gflops = {k: copies * 2e-9 * outputs * inputs * batch / s for k, s in seconds.items()}
                rows.append(
                    {"layer": name, "batch": batch, **gflops, "outputs/rows": gflops["outputs"] / gflops["rows"]}
                )
    publish("products", rows, [], as_json=options.json)


if __name__ == "__main__":
    main()
