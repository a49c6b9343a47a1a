"""Reading, writing and listing files, with the rights of the sandbox's code: links lead no further than it could go."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable


def work(action: str, path: str) -> Callable[[], None]:
    """Work for `spawn`: data from standard input, the answer on standard output, the exit status an errno."""
    act = {"read": _read, "write": _write, "list": _list}[action]

    def perform() -> None:
        try:
            act(path)
        except OSError as error:
            os._exit(error.errno or 1)
        except ValueError:  # a null byte in the name
            os._exit(22)
        os._exit(0)

    return perform


def _read(path: str) -> None:
    # Not blocking: a pipe that nobody writes to must be refused, not waited for.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os._exit(22 if not stat.S_ISDIR(os.fstat(fd).st_mode) else 21)
    while data := os.read(fd, 1 << 16):
        _put(1, data)


def _write(path: str) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o644)
    while data := os.read(0, 1 << 16):
        _put(fd, data)
    os.close(fd)


def _list(path: str) -> None:
    with os.scandir(path) as entries:
        names = sorted(entry.name + "/" * entry.is_dir(follow_symlinks=False) for entry in entries)
    _put(1, json.dumps(names).encode("ascii"))


def _put(fd: int, data: bytes) -> None:
    pending = memoryview(data)
    while pending:
        pending = pending[os.write(fd, pending) :]
