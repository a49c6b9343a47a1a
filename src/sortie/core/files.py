"""Files that survive a kill: whole or absent, or append-only with at most one torn line.

What the file system refuses becomes one line that names the path and the way out. Data reach the system with every
call, so a killed process loses nothing; a power cut may lose what the system had not yet put on disk.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

from sortie.core.errors import UsageError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raises: UsageError in place of OSError, naming `path` and the remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            why = "the disk is full; free some space, or choose another folder with --runs"
        elif error.errno in _DENIED:
            why = "not allowed to write there; choose another folder with --runs"
        else:
            why = f"{error.strerror or error}; choose another folder with --runs"
        raise UsageError(f"cannot write {path}: {why}") from None


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Valid JSON of anything: NaN and infinities become null, numpy scalars numbers, unknown objects their text."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, indent=indent)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):  # numpy and torch arrays and scalars
        return _plain(value.tolist())
    return str(value)


def write_bytes(path: Path, data: bytes) -> None:
    """Replace a file at once: a reader sees the old content or the new, never a part.

    Raises: UsageError if it cannot be written; the old content then still stands.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with explained(path):
        try:
            with aside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # the rename must not reach the disk before the data
            os.replace(aside, path)
        finally:
            aside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """`write_bytes` of UTF-8 text."""
    write_bytes(path, encode(text))


def encode(text: str) -> bytes:
    """UTF-8; a lone surrogate, which UTF-8 cannot hold, becomes its JSON escape and so survives in records."""
    return text.encode("utf-8", "backslashreplace")


class Lines:
    """An append-only JSONL file, opened on first use. A line that was torn never swallows the one after it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None
        self._torn = False

    def append(self, record: Mapping[str, Any]) -> None:
        """Add one record.

        Raises: UsageError if it cannot be written; earlier records stay readable.
        """
        line = encode(to_json(record)) + b"\n"
        with explained(self.path):
            file = self._open()
            pending = memoryview(b"\n" + line if self._torn else line)
            self._torn = True
            while pending:  # unbuffered: the system may take a part, and refuse the rest with an error
                pending = pending[file.write(pending) :]
            self._torn = False

    def close(self) -> None:
        """Close the file; a later `append` opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> FileIO:
        if self._file is None:
            self._torn = _ends_torn(self.path)
            self._file = self.path.open("ab", buffering=0)
        return self._file


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Records of a JSONL file in order; none if it is not there. A line torn by a kill or a full disk is skipped."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


def _ends_torn(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:  # absent, or not seekable: nothing of ours is in it
        return False
