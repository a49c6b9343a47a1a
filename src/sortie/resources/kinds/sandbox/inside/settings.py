"""What the host asks of a sandbox: the first frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Settings(NamedTuple):
    """Sizes in bytes, times in seconds."""

    kind: str
    """bubblewrap, namespaces or none."""
    uid: int | None
    """User that the sandbox's code becomes; None: it stays who it is."""
    base: str
    """Folder that holds `files` and `tmp`."""
    seen: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]] | None
    """Parts of the host and symbolic links, where the first process makes the file system itself."""
    devices: Sequence[str]
    shm: int
    bin: str
    """Folder of `python`."""
    python: str
    program: str
    """File of the program that `python` calls run in."""
    env: Mapping[str, str]
    memory: int
    cpu_s: float
    cores: int | None
    processes: int
    file: int
    disk: int

    @property
    def isolated(self) -> bool:
        """Whether there is any isolation."""
        return self.kind != "none"

    @property
    def files(self) -> str:
        """The commands' directory."""
        return f"{self.base}/files"

    @property
    def environment(self) -> dict[str, str]:
        """All that a command's environment holds."""
        path = f"{self.bin}:/usr/local/bin:/usr/bin:/bin" if self.isolated else "/usr/local/bin:/usr/bin:/bin"
        own = {"PATH": path, "HOME": self.files, "TMPDIR": f"{self.base}/tmp", "LANG": "C.UTF-8"}
        # What a program printed before it was killed must have arrived; threads must not reserve memory by arenas.
        return own | {"PYTHONUNBUFFERED": "1", "MALLOC_ARENA_MAX": "2", **self.env}
