"""Tensors of a model folder: one safetensors file, or several with an index."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from sortie.core.errors import UsageError
from sortie.models.folder import weight_files


def read_weights(folder: Path, *, dtype: torch.dtype, device: str = "cpu") -> dict[str, Tensor]:
    """All tensors under their names, converted to `dtype`.

    Raises: UsageError if the folder has no safetensors weights or a listed file is missing or damaged.
    """
    from safetensors import SafetensorError, safe_open

    out: dict[str, Tensor] = {}
    for path in weight_files(folder):
        if not path.is_file():
            raise UsageError(f"{folder} has no {path.name}: weights in other formats than safetensors are not read")
        try:
            with safe_open(path, framework="pt", device=device) as file:
                for name in file.keys():  # noqa: SIM118 - a safe_open handle is not a mapping
                    out[name] = file.get_tensor(name).to(dtype)
        except (OSError, SafetensorError) as error:
            raise UsageError(f"cannot read weights {path}: {error}") from None
    return out
