"""The folder of a sandbox that has no file system of its own (isolation 'none').

It lies in this user's own folder of the temporary directory and is locked while its first process lives, which removes
it. Folders that a kill left behind are unlocked, and go when the next one is made.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from sortie.core.errors import ResourceError

LOCK = ".lock"


class Scratch:
    """One locked folder. The lock is an open file, so whoever inherits that holds it too."""

    def __init__(self, path: Path, lock_fd: int) -> None:
        """Use `make`."""
        self.path = path
        self.lock_fd = lock_fd

    @classmethod
    def make(cls) -> Self:
        """Make a folder, removing first those of sandboxes that are gone.

        Raises: ResourceError if this user's folder belongs to somebody else.
        """
        root = Path(tempfile.gettempdir(), f"sortie-{os.getuid()}")
        root.mkdir(mode=0o700, exist_ok=True)
        if root.is_symlink() or root.stat().st_uid != os.getuid():
            raise ResourceError(f"{root} belongs to another user; set TMPDIR to a folder of your own")
        with _locked(root / LOCK):  # between making a folder and locking it nobody may take it for a stale one
            for old in root.glob("sandbox-*"):
                _remove_if_stale(old)
            path = Path(tempfile.mkdtemp(prefix="sandbox-", dir=root))
            lock_fd = os.open(path / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(lock_fd, fcntl.LOCK_EX)
        return cls(path, lock_fd)

    def hand_over(self) -> None:
        """Leave the lock to the first process, which has inherited it."""
        os.close(self.lock_fd)

    def remove(self) -> None:
        """Give up the lock and remove the folder."""
        os.close(self.lock_fd)
        shutil.rmtree(self.path, ignore_errors=True)


def _remove_if_stale(path: Path) -> None:
    with contextlib.suppress(OSError), _locked(path / LOCK, wait=False):
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(fd)
