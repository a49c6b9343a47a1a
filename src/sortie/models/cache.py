"""Folders that are made once per machine, and are either whole or not there.

A folder is built aside, gets its manifest last, and is renamed into place under a lock; a process killed on the way
leaves only a `.partial` folder, which the next one sweeps away.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sortie.core.errors import UsageError

MANIFEST = "sortie-manifest.json"


def cache_root() -> Path:
    """SORTIE_CACHE, or `sortie` in the platform's cache folder."""
    if chosen := os.environ.get("SORTIE_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "sortie" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "sortie"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sortie"


def model_folder(name: str) -> Path:
    """Where the named model lives once it is made."""
    return cache_root() / "models" / name


def is_whole(folder: Path, *, hashes: bool = False) -> bool:
    """Whether the manifest is there and every file it lists has its size and, with `hashes`, its SHA-256."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        for name, entry in manifest["files"].items():
            path = folder / name
            if path.stat().st_size != entry["bytes"] or (hashes and sha256(path) != entry["sha256"]):
                return False
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    return True


def make_once(folder: Path, make: Callable[[Path], None], *, needs_bytes: int = 0, hashes: bool = False) -> Path:
    """Return `folder`, having `make` fill it first unless it is whole already. Processes at once make it once.

    `make` gets an empty folder on the same disk; anything it raises passes, and leaves nothing behind.
    Raises: UsageError if the cache cannot be written or the disk has not `needs_bytes` free.
    """
    if is_whole(folder, hashes=hashes):
        return folder
    from filelock import FileLock

    with explained(folder.parent, needs_bytes):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # The lock is the system's, on an open file: it ends with its process, however that ends.
        with FileLock(folder.parent / f".{folder.name}.lock"):
            if not is_whole(folder, hashes=hashes):
                _make(folder, make, needs_bytes)
    return folder


def _make(folder: Path, make: Callable[[Path], None], needs_bytes: int) -> None:
    aside = folder.parent / f".{folder.name}.partial"
    shutil.rmtree(aside, ignore_errors=True)  # of a process that was killed: we hold the lock
    if shutil.disk_usage(folder.parent).free < needs_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    try:
        aside.mkdir()
        make(aside)
        _write_manifest(aside)
        shutil.rmtree(folder, ignore_errors=True)  # present only if damaged
        os.replace(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_manifest(folder: Path) -> None:
    files = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb+") as file:
            os.fsync(file.fileno())  # the rename must not reach the disk before what it names
        files[path.name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    (folder / MANIFEST).write_text(json.dumps({"files": files}, indent=2) + "\n", encoding="utf-8")


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def explained(folder: Path, needs_bytes: int = 0, advice: str = "set SORTIE_CACHE to another folder") -> Iterator[None]:
    """Turn what the file system refuses into one line that names the folder and the way out.

    Raises: UsageError in place of OSError.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            need = f" ({needs_bytes / 1e6:.0f} MB needed)" if needs_bytes else ""
            raise UsageError(f"the disk under {folder} is full{need}: free some space, or {advice}") from None
        raise UsageError(f"cannot write to {folder}: {error.strerror or error}; {advice}") from None
