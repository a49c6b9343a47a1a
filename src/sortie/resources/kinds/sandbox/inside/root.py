"""The sandbox's file system, made by its first process where bubblewrap does not make it.

Read-only parts of the host, a private /proc, a few devices, and two memory file systems of fixed size. While it is
being made the standard library is out of reach: nothing here may import on use.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from .libc import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    pivot_root,
    set_hostname,
    unmount,
)

_STAGE = "/tmp"
_INODES = 16384
_LOCKED = {1: 1, 2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""Flags of statvfs to those of mount: what a less privileged mount namespace must keep."""


def enter(
    binds: Sequence[Sequence[str]],
    links: Sequence[Sequence[str]],
    devices: Sequence[str],
    sizes: Sequence[tuple[str, int]],
) -> None:
    """Replace this mount namespace's root. `sizes` are memory file systems in bytes by place.

    Raises: OSError if the system refuses a mount.
    """
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    mount("tmpfs", _STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    os.mkdir(f"{_STAGE}/old")
    os.mkdir(f"{_STAGE}/new")
    pivot_root(_STAGE, f"{_STAGE}/old")  # uncovers in /old what the stage covered
    os.chdir("/")
    mount("tmpfs", "/new", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    for source, place in binds:
        _bind(f"/old{source}", f"/new{place}")
    os.mkdir("/new/proc")
    mount("proc", "/new/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for device in devices:
        _bind(f"/old/dev/{device}", f"/new/dev/{device}", read_only=False)
    for target, place in links:
        os.makedirs(os.path.dirname(f"/new{place}"), exist_ok=True)
        os.symlink(target, f"/new{place}")
    for place, size in sizes:
        os.makedirs(f"/new{place}", exist_ok=True)
        mode = "1777" if place.startswith("/dev") else "755"
        data = f"mode={mode},size={size},nr_inodes={_INODES}"
        mount("tmpfs", f"/new{place}", "tmpfs", MS_NOSUID | MS_NODEV, data)
    os.chdir("/new")
    pivot_root(".", ".")
    unmount(".")
    os.chdir("/")
    mount("none", "/", "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    set_hostname("sandbox")


def _bind(source: str, place: str, *, read_only: bool = True) -> None:
    if os.path.isdir(source):
        os.makedirs(place, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        open(place, "w").close()
    mount(source, place, "", MS_BIND | MS_REC)
    if read_only:
        for point in [place, *_mounts_below(place)]:
            held = os.statvfs(point).f_flag
            kept = sum(flag for seen, flag in _LOCKED.items() if held & seen)
            mount("none", point, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | kept)


def _mounts_below(place: str) -> list[str]:
    with open("/old/proc/self/mountinfo") as table:
        points = [_unescaped(line.split()[4]) for line in table]
    return [point for point in points if point.startswith(place + "/")]


def _unescaped(path: str) -> str:
    return re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), path)
