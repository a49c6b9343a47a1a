"""System calls that the standard library of Python 3.11 does not have."""

from __future__ import annotations

import ctypes
import os

PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

CAP_SETPCAP = 8

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, *arguments: int) -> None:
    """prctl(2). Raises: OSError."""
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    _checked(_libc.prctl(ctypes.c_int(option), *padded), f"prctl {option}")


def install_filter(program: bytes) -> None:
    """Pass every later system call of this process and its children through a seccomp program. Raises: OSError."""

    class Program(ctypes.Structure):
        _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    code = ctypes.create_string_buffer(program, len(program))
    whole = Program(len(program) // 8, ctypes.cast(code, ctypes.c_void_p))
    pr_set_seccomp, mode_filter = ctypes.c_int(22), ctypes.c_ulong(2)
    _checked(
        _libc.prctl(pr_set_seccomp, mode_filter, ctypes.byref(whole), ctypes.c_ulong(0), ctypes.c_ulong(0)), "seccomp"
    )


def holds(capability: int) -> bool:
    """Whether this process has a capability in effect."""
    with open("/proc/self/status") as status:
        held = next(line for line in status if line.startswith("CapEff:"))
    return bool(int(held.split()[1], 16) >> capability & 1)


def drop_bounding_set() -> None:
    """Let no file that is executed bring a capability back. Raises: OSError."""
    with open("/proc/sys/kernel/cap_last_cap") as last:
        for capability in range(int(last.read()) + 1):
            prctl(PR_CAPBSET_DROP, capability)


def clear_capabilities() -> None:
    """Give up every capability now held. Raises: OSError."""
    version_3 = 0x20080522
    header = (ctypes.c_uint32 * 2)(version_3, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """mount(2). Raises: OSError."""
    words = [word.encode() for word in (source, target, kind)]
    _checked(_libc.mount(*words, ctypes.c_ulong(flags), data.encode()), f"mounting {target}")


def pivot_root(new: str, old: str) -> None:
    """pivot_root(2). Raises: OSError."""
    _checked(_libc.pivot_root(new.encode(), old.encode()), "pivot_root")


def unmount(target: str) -> None:
    """umount2(2) of a whole tree, at once for everybody who looks. Raises: OSError."""
    _checked(_libc.umount2(target.encode(), MNT_DETACH), f"unmounting {target}")


def set_hostname(name: str) -> None:
    """sethostname(2). Raises: OSError."""
    _checked(_libc.sethostname(name.encode(), ctypes.c_size_t(len(name))), "sethostname")


def _checked(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
