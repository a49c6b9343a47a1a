"""Adapter checkpoints: safetensors and a manifest, written aside and put in place by one rename."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from sortie.core.errors import UsageError
from sortie.core.policy import LoraConfig, PolicyVersion
from sortie.models.config import DecoderConfig
from sortie.models.lora import Lora, tensors_digest

MANIFEST = "manifest.json"


def save_adapter(path: Path, lora: Lora, optimizer: torch.optim.Optimizer, counters: Mapping[str, int]) -> Path:
    """Write a checkpoint folder. An older one of the same name is replaced only once the new one is whole.

    Raises: UsageError if the disk refuses.
    """
    from safetensors.torch import save_file

    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    tensors = {name: t.detach().contiguous() for name, t in lora.tensors.items()}
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        save_file(tensors, aside / "adapter.safetensors")
        save_file(_optimizer_tensors(lora, optimizer), aside / "optimizer.safetensors")
        manifest = {"lora": lora.config.model_dump(mode="json"), "digest": tensors_digest(tensors), **counters}
        (aside / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
        if path.exists():
            old = path.with_name(f".{path.name}.{os.getpid()}.old")
            path.rename(old)
            aside.rename(path)
            shutil.rmtree(old)
        else:
            aside.rename(path)
    except Exception as error:  # safetensors wraps a full disk in its own error; whatever it was, nothing half is left
        shutil.rmtree(aside, ignore_errors=True)
        raise UsageError(f"cannot save checkpoint {path}: {error}; free some space and try again") from error
    return path


def load_adapter(path: Path, lora: Lora, optimizer: torch.optim.Optimizer | None) -> dict[str, int]:
    """Copy a checkpoint into `lora` (and `optimizer`); returns its counters.

    Raises: UsageError if it is missing, damaged or of another shape.
    """
    tensors, manifest = read_adapter(path)
    if set(tensors) != set(lora.tensors) or any(tensors[n].shape != t.shape for n, t in lora.tensors.items()):
        raise UsageError(f"checkpoint {path} has another shape: it was trained with lora = {manifest['lora']}")
    with torch.no_grad():
        for name, tensor in lora.tensors.items():
            tensor.copy_(tensors[name])
    if optimizer is not None:
        _restore_optimizer(path / "optimizer.safetensors", lora, optimizer)
    return {"steps": int(manifest["steps"]), "published": int(manifest["published"])}


def read_adapter(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors and manifest of a checkpoint.

    Raises: UsageError if it is missing or damaged.
    """
    from safetensors.torch import load_file

    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        tensors = load_file(path / "adapter.safetensors")
    except Exception as error:  # a torn file shows in many ways; all of them mean the same to the user
        raise UsageError(f"{path} is not a whole checkpoint: {error}") from error
    if tensors_digest(tensors) != manifest["digest"]:
        raise UsageError(f"{path} is damaged: its weights do not match the digest in {MANIFEST}")
    return tensors, manifest


def _optimizer_tensors(lora: Lora, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    out = {}
    for name, parameter in lora.tensors.items():
        for key, value in optimizer.state.get(parameter, {}).items():
            out[f"{name}|{key}"] = value.detach().contiguous()
    return out


def _restore_optimizer(path: Path, lora: Lora, optimizer: torch.optim.Optimizer) -> None:
    from safetensors.torch import load_file

    optimizer.state.clear()
    for name, value in load_file(path).items():
        parameter, _, key = name.partition("|")
        optimizer.state[lora.tensors[parameter]][key] = value


def lora_of(path: Path, model: DecoderConfig) -> tuple[Lora, PolicyVersion]:
    """A checkpoint's adapter, ready to be served.

    Raises: UsageError if it is missing, damaged, or was trained on another model.
    """
    tensors, manifest = read_adapter(path)
    config = LoraConfig.model_validate(manifest["lora"])
    lora = Lora.create(config, model, seed=0)
    if {n: t.shape for n, t in lora.tensors.items()} != {n: t.shape for n, t in tensors.items()}:
        raise UsageError(f"checkpoint {path} does not fit this model: it was trained on another one")
    return Lora(config, model, tensors), PolicyVersion("policy", int(manifest["published"]), str(manifest["digest"]))
