"""Adapters as PEFT folders, to read and to write, and merged weights in Hugging Face layout.

PEFT is a file format here: `peft.PeftModel.from_pretrained` loads what `write_adapter` writes, with equal logits.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from sortie.core.errors import UsageError
from sortie.core.policy import ALL_TARGETS, LoraConfig
from sortie.models.cache import explained
from sortie.models.config import DecoderConfig
from sortie.models.folder import read_json, weight_files
from sortie.models.lora import Lora, projection_shapes, tensor_name

ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
_PREFIX = "base_model.model.model."
_COMPANIONS = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "model.safetensors.index.json",
)


def export_adapter(lora: Lora, folder: Path, *, base: str) -> Path:
    """Make `folder` hold the adapter as PEFT reads it; it appears whole or not at all.

    `base` is the model the adapter belongs to, kept as a note. Raises: UsageError if the folder has files already or
    cannot be written.
    """
    return _export(folder, lambda aside: write_adapter(lora, aside, base=base))


def export_merged(lora: Lora, base: Path, folder: Path) -> Path:
    """Make `folder` hold the model in `base` with the adapter added to its weights; whole or not at all.

    Sums are taken in fp32 and kept in the dtype of the base weights, shard by shard.
    Raises: UsageError if the adapter names a weight the base lacks, or the folder has files or cannot be written.
    """
    return _export(folder, lambda aside: _write_merged(lora, base, aside))


def write_adapter(lora: Lora, folder: Path, *, base: str) -> None:
    """Write the two files of a PEFT adapter into an existing folder.

    Raises: OSError.
    """
    tensors = {peft_name(name): tensor for name, tensor in lora.tensors.items()}
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": lora.config.rank,
        "lora_alpha": lora.config.alpha,
        "target_modules": sorted(lora.config.targets),
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "use_rslora": False,
        "use_dora": False,
        "inference_mode": True,
    }
    _save(tensors, folder / ADAPTER_WEIGHTS)
    (folder / ADAPTER_CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def read_adapter(folder: Path, model: DecoderConfig) -> Lora:
    """Read a PEFT adapter for a model of that shape; every tensor must fit, and none may be missing.

    Raises: UsageError if a file is missing or unreadable, the adapter is more than plain LoRA, or tensors do not match.
    """
    raw = read_json(folder / ADAPTER_CONFIG)
    if not raw or not (folder / ADAPTER_WEIGHTS).is_file():
        raise UsageError(f"{folder} is not an adapter folder: it needs {ADAPTER_CONFIG} and {ADAPTER_WEIGHTS}")
    _check_plain(raw, folder)
    found = _read_tensors(folder / ADAPTER_WEIGHTS)
    targets = tuple(t for t in ALL_TARGETS if any(f".{t}.lora_" in name for name in found))
    if not targets:
        raise UsageError(f"{folder} adapts none of {', '.join(ALL_TARGETS)}")
    rank, alpha = raw["r"], float(raw["lora_alpha"])
    # Rank-stabilised LoRA scales by alpha / sqrt(r): the same adapter with a larger alpha.
    config = LoraConfig(rank=rank, alpha=alpha * math.sqrt(rank) if raw.get("use_rslora") else alpha, targets=targets)
    return Lora(config, model, _matched(found, config, model, folder))


def peft_name(name: str) -> str:
    """`layers.0.mlp.up_proj.A` -> `base_model.model.model.layers.0.mlp.up_proj.lora_A.weight`."""
    path, which = name.rsplit(".", 1)
    return f"{_PREFIX}{path}.lora_{which}.weight"


def _check_plain(raw: dict[str, Any], folder: Path) -> None:
    """Raises: UsageError naming the first setting that is not plain LoRA."""
    plain: dict[str, tuple[Any, ...]] = {
        "peft_type": ("LORA",),
        "bias": ("none", None),
        "use_dora": (False, None),
        "fan_in_fan_out": (False, None),
        "modules_to_save": (None, []),
        "rank_pattern": (None, {}),
        "alpha_pattern": (None, {}),
        "layers_to_transform": (None, []),
        "lora_bias": (False, None),
    }
    for key, accepted in plain.items():
        if raw.get(key, accepted[0]) not in accepted:
            raise UsageError(f"{folder}: only plain LoRA adapters are read, this one has {key}={raw[key]!r}")


def _read_tensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    return tensors


def _matched(found: dict[str, Tensor], config: LoraConfig, model: DecoderConfig, folder: Path) -> dict[str, Tensor]:
    """Our name -> tensor, fp32.

    Raises: UsageError if a tensor is missing, left over, or of another shape than the model gives it.
    """
    out = {}
    shapes = projection_shapes(model)
    for layer in range(model.layers):
        for target in config.targets:
            outputs, inputs = shapes[target]
            for which, shape in (("A", (config.rank, inputs)), ("B", (outputs, config.rank))):
                name = tensor_name(layer, target, which)
                tensor = found.pop(peft_name(name), None)
                if tensor is None or tensor.shape != shape:
                    what = "is missing" if tensor is None else f"is {tuple(tensor.shape)}, the model needs {shape}"
                    raise UsageError(f"{folder} does not fit the model: {peft_name(name)} {what}")
                out[name] = tensor.float()
    if found:
        raise UsageError(f"{folder} has {len(found)} tensors that fit nowhere, such as {min(found)!r}")
    return out


def _write_merged(lora: Lora, base: Path, folder: Path) -> None:
    pairs = {name.removesuffix(".A") for name in lora.tensors if name.endswith(".A")}
    for path in weight_files(base):
        tensors = _read_tensors(path)
        for name in tensors:
            pair = name.removeprefix("model.").removesuffix(".weight")
            if pair in pairs:
                pairs.remove(pair)
                update = lora.tensors[f"{pair}.B"] @ lora.tensors[f"{pair}.A"] * lora.scale
                weight = tensors[name]
                tensors[name] = (weight.float() + update.detach().to(weight.device)).to(weight.dtype)
        _save(tensors, folder / path.name)
    if pairs:
        raise UsageError(f"{base} lacks {len(pairs)} weights that the adapter changes, such as {min(pairs)!r}")
    for name in _COMPANIONS:
        if (base / name).is_file():
            shutil.copyfile(base / name, folder / name)


def _save(tensors: dict[str, Tensor], path: Path) -> None:
    """Raises: OSError, also where the library has an error of its own for it."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file({k: t.detach().cpu().contiguous() for k, t in tensors.items()}, path, metadata={"format": "pt"})
    except SafetensorError as error:
        code = errno.ENOSPC if "(os error 28)" in str(error) else errno.EIO
        raise OSError(code, str(error)) from None
    path.chmod(0o644)  # the library makes files that only their owner reads


def _export(folder: Path, write: Callable[[Path], None]) -> Path:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already and not empty: export to a new folder")
    aside = folder.parent / f".{folder.name}.partial"
    with explained(folder.parent, advice="export to another folder"):
        shutil.rmtree(aside, ignore_errors=True)
        try:
            aside.mkdir(parents=True)
            write(aside)
            if folder.exists():
                folder.rmdir()
            os.replace(aside, folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return folder
