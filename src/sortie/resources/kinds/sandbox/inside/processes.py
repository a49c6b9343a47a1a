"""The processes of a sandbox: all descendants of its first one, also those that started a session of their own."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import time
from collections.abc import Collection
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_ROUNDS = 200


class Process(NamedTuple):
    """One line of /proc/PID/stat."""

    pid: int
    parent: int
    ended: bool
    """Only its parent has not noticed."""
    cpu_s: float
    """Its own, and of those children that it has waited for."""
    threads: int
    rss: int
    """Bytes of memory, pages shared with others included."""


def descendants() -> list[Process]:
    """Every process below this one."""
    found = {process.pid: process for process in map(_look, os.listdir("/proc")) if process is not None}
    children: dict[int, list[Process]] = {}
    for process in found.values():
        children.setdefault(process.parent, []).append(process)
    below, front = [], [os.getpid()]
    while front:
        new = children.get(front.pop(), [])
        below += new
        front += [process.pid for process in new]
    return below


def cpu_seconds(alive: Collection[Process]) -> float:
    """Processor time used up by every process there ever was."""
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    return waited.ru_utime + waited.ru_stime + sum(process.cpu_s for process in alive)


def own_memory(alive: Collection[Process]) -> int:
    """Bytes in use by them together, each shared page once."""
    return sum(_proportional(process) for process in alive)


def end_all(keep: Collection[int], reaped: dict[int, int]) -> None:
    """Kill every descendant but those kept, until none is left. Exit statuses go into `reaped`.

    Raises: RuntimeError if new ones appear as fast as they are killed.
    """
    for turn in range(_ROUNDS):
        reap(reaped)
        alive = [process for process in descendants() if not process.ended and process.pid not in keep]
        if not alive:
            reap(reaped)
            return
        for process in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        time.sleep(min(0.02, 0.0005 * (turn + 1)))
    raise RuntimeError("processes appear as fast as they are killed")


def reap(statuses: dict[int, int]) -> None:
    """Take the exit status of every child and adopted orphan that has ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        statuses[pid] = status


def await_stop(pid: int, pidfd: int) -> bool:
    """Whether a process that was told to stop has; False: it has ended instead, or is about to."""
    for _ in range(_ROUNDS):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
            if file.read().rpartition(b") ")[2].startswith(b"T"):
                return True
        if select.select([pidfd], [], [], 0.005)[0]:
            break
    return False


def _look(name: str) -> Process | None:
    if not name.isdigit():
        return None
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            line = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = line[line.rindex(b")") + 2 :].split()  # the name before may hold anything
    ticks = sum(map(int, fields[11:15]))
    ended = fields[0] in (b"Z", b"X")
    return Process(int(name), int(fields[1]), ended, ticks / _TICKS, int(fields[17]), int(fields[21]) * PAGE)


def _proportional(process: Process) -> int:
    try:
        with open(f"/proc/{process.pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) << 10
    except PermissionError:  # it made itself unreadable
        return process.rss
    except OSError:
        pass
    return 0  # it has let go of its memory, and is about to end
