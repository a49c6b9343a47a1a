"""The command lines that isolate: which namespaces, which parts of the host are seen, and as whom.

Root makes the namespaces as root and lets the sandbox's code run as an unprivileged user of the host: under a user
namespace it would stay the host's root, which the process limit does not bind. Everybody else gets a user namespace.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from sortie.core.errors import ResourceError

BASE = "/box"
"""Where the sandbox's own file system is: the commands' directory and the one for temporary files."""
INSIDE = "/opt/sortie/inside"
"""Where the first process finds its code."""
BIN = "/opt/sortie/bin"
"""Holds `python` and `python3`."""
SHM_BYTES = 16 << 20
"""Size of /dev/shm, which the semaphores of multiprocessing need."""
DEVICES = ("null", "zero", "full", "random", "urandom")

_HERE = str(Path(__file__).parent / "inside")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache")
_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin")
_STANDARD = ((0, "in"), (1, "out"), (2, "err"))
_SYS_ADMIN = 21
_KEPT = ("SETUID", "SETGID", "SETPCAP", "KILL", "CHOWN", "SYS_PTRACE", "SYS_RESOURCE")
"""What the first process may do as root: become its user, own that user's files, end and measure its processes."""


def build(kind: str, disk_bytes: int) -> list[str]:
    """The command that starts a sandbox's first process.

    Raises: ResourceError if what it needs is not installed.
    """
    if kind == "none":
        return _first(_HERE)
    return _bubblewrap(disk_bytes) if kind == "bubblewrap" else _namespaces()


@functools.cache
def privileged() -> bool:
    """Whether this process is root, and may make namespaces as such."""
    status = Path("/proc/self/status").read_text()
    held = int(status.split("CapEff:")[1].split()[0], 16)
    return os.geteuid() == 0 and bool(held >> _SYS_ADMIN & 1)


@functools.cache
def interpreter() -> str:
    """The interpreter below any virtual environment."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    path = Path(sys.base_prefix, "bin", name)
    return str(path if path.exists() else Path(sys.executable).resolve())


@functools.cache
def seen() -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """What a sandbox sees of the host, read-only, as (source, place); and its symbolic links, as (target, place)."""
    binds = [(path, path) for path in _SYSTEM if os.path.exists(path) and not os.path.islink(path)]
    links = [(os.readlink(path), path) for path in _SYSTEM if os.path.islink(path)]
    for folder in (sys.base_prefix, str(Path(interpreter()).resolve().parent)):
        if not any(Path(folder).is_relative_to(place) for _, place in binds):
            binds.append((folder, folder))
    binds.append((_HERE, INSIDE))
    links += [(interpreter(), f"{BIN}/python"), (interpreter(), f"{BIN}/python3"), (f"{BASE}/tmp", "/tmp")]
    links += [("/proc/self/fd", "/dev/fd"), *((f"/proc/self/fd/{i}", f"/dev/std{n}") for i, n in _STANDARD)]
    return tuple(binds), tuple(links)


def program(kind: str) -> str:
    """File of the program that runs `python` calls, as the sandbox sees it."""
    return f"{_HERE if kind == 'none' else INSIDE}/program.py"


def _first(inside: str) -> list[str]:
    start = f"import sys; sys.path.insert(0, {os.path.dirname(inside)!r}); from inside.first import main; main()"
    return [interpreter(), "-I", "-S", "-B", "-c", start]


def _bubblewrap(disk_bytes: int) -> list[str]:
    argv = [_installed("bwrap"), "--die-with-parent", "--as-pid-1", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    argv += ["--unshare-uts", "--hostname", "sandbox", "--unshare-cgroup-try", "--cap-drop", "ALL"]
    if privileged():
        argv += [word for name in _KEPT for word in ("--cap-add", f"CAP_{name}")]
    else:
        argv += ["--unshare-user"]
    binds, links = seen()
    for folder in _parents([place for _, place in (*binds, *links)]):
        argv += ["--perms", "0755", "--dir", folder]
    for source, place in binds:
        argv += ["--ro-bind", source, place]
    argv += ["--proc", "/proc", "--tmpfs", "/dev"]
    for device in DEVICES:
        argv += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    for target, place in links:
        argv += ["--symlink", target, place]
    argv += ["--perms", "1777", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm"]
    argv += ["--size", str(disk_bytes), "--tmpfs", BASE, "--remount-ro", "/dev", "--remount-ro", "/"]
    return [*argv, "--", *_first(INSIDE)]


def _namespaces() -> list[str]:
    argv = [_installed("unshare"), "--mount", "--pid", "--fork", "--kill-child", "--net", "--ipc", "--uts"]
    if not privileged():
        argv += ["--user", "--map-root-user"]
    return [*argv, "--", *_first(_HERE)]


def _parents(places: Sequence[str]) -> list[str]:
    """Folders that must be there first, outermost first; bubblewrap would make them for its own user only."""
    found = {str(parent) for place in places for parent in Path(place).parents} - {"/"}
    outside = {folder for folder in found if not any(Path(folder).is_relative_to(place) for place in places)}
    return sorted(outside)


def _installed(name: str) -> str:
    for folder in _FOLDERS:
        path = Path(folder, name)
        if os.access(path, os.X_OK):
            return str(path)
    raise ResourceError(f"{name} is not installed")
