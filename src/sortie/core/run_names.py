"""Names of runs, and claiming one: the folder is made, so that no other process can have it."""

from __future__ import annotations

import re
from pathlib import Path

from sortie.core.errors import UsageError
from sortie.core.files import explained

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_LONGEST_STEM = 60


def claim(runs: Path, name: str | None, stem: str) -> Path:
    """Make `runs/name`; without a name, `STEM-1` and up. `stem` may be any text, such as names of environments.

    Raises: UsageError if the name is taken or cannot be a folder's, or the folder cannot be made.
    """
    if name is not None and not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a run: use letters, digits and any of _ . + -")
    stem = re.sub(r"[^\w.+-]+", "-", stem).strip(".-")[:_LONGEST_STEM] or "run"
    with explained(runs / (name or stem)):
        runs.mkdir(parents=True, exist_ok=True)
        return _make_named(runs / name) if name else _make_numbered(runs, stem)


def _make_named(path: Path) -> Path:
    try:
        path.mkdir()
    except FileExistsError:
        raise UsageError(f"{path} is there already: choose another --name, or remove that folder") from None
    return path


def _make_numbered(runs: Path, stem: str) -> Path:
    number = 1
    while True:
        path = runs / f"{stem}-{number}"
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        else:
            return path
