"""What torch says of this machine."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from sortie.models.placement import flops_per_second


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchFacts:
    """Build and speed of the torch at hand."""

    version: str
    threads: int
    """Threads of one operation."""
    capability: str
    """Instruction set its CPU kernels use, such as AVX2."""
    cuda: str | None
    """Name of the first CUDA device; None: none usable."""
    gflops: float
    """Measured, single precision, in a product of decoding shape."""


def torch_facts(seconds: float = 0.2) -> TorchFacts:
    """Ask torch, and measure for `seconds`."""
    usable = torch.cuda.is_available()
    return TorchFacts(
        version=torch.__version__,
        threads=torch.get_num_threads(),
        capability=torch.backends.cpu.get_cpu_capability(),
        cuda=torch.cuda.get_device_name(0) if usable else None,
        gflops=flops_per_second(seconds) / 1e9,
    )
