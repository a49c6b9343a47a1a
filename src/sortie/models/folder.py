"""Files of a model folder in Hugging Face layout, looked at without loading weights."""

from __future__ import annotations

import json
import struct
from math import prod
from pathlib import Path
from typing import Any

from sortie.core.errors import UsageError


def check_folder(folder: Path) -> Path:
    """Return `folder` if it has all that a model needs.

    Raises: UsageError naming what is missing.
    """
    missing = [name for name in ("config.json", "tokenizer.json") if not (folder / name).is_file()]
    missing += [path.name for path in weight_files(folder) if not path.is_file()]
    if missing:
        raise UsageError(f"{folder} is not a complete model folder: it has no {', no '.join(missing)}")
    return folder


def count_parameters(folder: Path) -> int:
    """Number of weights, from the headers of the safetensors files.

    Raises: UsageError if a header cannot be read.
    """
    total = 0
    for path in weight_files(folder):
        try:
            with path.open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                header = json.loads(file.read(length))
        except (OSError, ValueError, struct.error) as error:
            raise UsageError(f"cannot read weights {path}: {error}") from None
        total += sum(prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
    return total


def weight_files(folder: Path) -> list[Path]:
    """Where the folder's weights are to be: the shards its index lists, or the single file. They may be missing.

    Raises: UsageError if the index cannot be read.
    """
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return [folder / name for name in sorted(set(read_json(index).get("weight_map", {}).values()))]
    return [folder / "model.safetensors"]


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if there is no such file.

    Raises: UsageError if the file cannot be read or is not a JSON object.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    if not isinstance(data, dict):
        raise UsageError(f"{path} must hold a JSON object, not {type(data).__name__}")
    return data
