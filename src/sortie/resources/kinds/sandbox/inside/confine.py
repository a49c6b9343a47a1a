"""What every process of a sandbox's code goes through before its first instruction."""

from __future__ import annotations

import os
import re
import resource
import signal

from . import libc, syscalls
from .settings import Settings

OPEN_FILES = 128
"""Of one process. Each socket and pipe among them takes memory of the kernel, which nothing here counts."""
OWN_COUNT_SINCE = (5, 14)
"""Linux version that counts the processes of a user in each user namespace by itself."""


def confine(settings: Settings, *, timed: bool) -> None:
    """Make this process an unprivileged, limited one; there is no way back. `timed`: bound its processor time too.

    Raises: OSError if the system refuses; the process must then not go on.
    """
    os.chdir(settings.files)
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    if settings.cores is not None:
        shuffled = sorted(os.sched_getaffinity(0), key=lambda _: os.urandom(8))  # not the same ones for every sandbox
        os.sched_setaffinity(0, shuffled[: settings.cores])
    _limit(settings, timed)
    if not settings.isolated:
        return
    if settings.uid is not None:
        os.setgroups([])
        _drop_bounding()
        os.setresgid(settings.uid, settings.uid, settings.uid)
        os.setresuid(settings.uid, settings.uid, settings.uid)
    else:
        _drop_bounding()
    libc.clear_capabilities()
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    libc.install_filter(syscalls.program())


def _limit(settings: Settings, timed: bool) -> None:
    limits = {
        resource.RLIMIT_AS: settings.memory,
        resource.RLIMIT_FSIZE: settings.file,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_CORE: 0,
    }
    if timed:
        limits[resource.RLIMIT_CPU] = int(settings.cpu_s) + 1
    if settings.isolated and (settings.uid is not None or _counts_own_processes()):
        limits[resource.RLIMIT_NPROC] = settings.processes + (settings.uid is None)  # the first process is one of them
    for which, value in limits.items():
        hard = resource.getrlimit(which)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (bound, bound))


def _counts_own_processes() -> bool:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return found is not None and (int(found[1]), int(found[2])) >= OWN_COUNT_SINCE


def _drop_bounding() -> None:
    if libc.holds(libc.CAP_SETPCAP):
        libc.drop_bounding_set()
