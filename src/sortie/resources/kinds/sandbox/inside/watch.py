"""The limits that the kernel has no count for: those of all processes together."""

from __future__ import annotations

import os
import time

from . import processes
from .settings import Settings

TICK_S = 0.02
LASTING = 10
"""Looks in a row after which memory of processes that come and go counts like any other."""
FILES = 16384
"""Most files at once: each takes memory of the kernel, also when empty."""


class Watch:
    """Watches one command from its start."""

    def __init__(self, settings: Settings, timeout_s: float, *, files: int = FILES) -> None:
        """`files`: most files there may be."""
        self._settings = settings
        self._files = files
        self._timeout_s = timeout_s
        self._started = time.monotonic()
        self._cpu_before = processes.cpu_seconds(processes.descendants())
        self._next_look = 0.0
        self._known: set[int] = set()
        self._over = 0
        self._over_known = 0
        self.timed_out = False

    def passed(self) -> str | None:
        """The limit that has been passed, with its value. Looks once per tick, however often it is asked."""
        now = time.monotonic()
        if now - self._started >= self._timeout_s:
            self.timed_out = True
            return f"time: {self._timeout_s:g} s"
        if now < self._next_look:
            return None
        self._next_look = now + TICK_S
        return self._look()

    def _memory(self, alive: list[processes.Process]) -> str | None:
        """Whether the tree holds too much memory.

        A process just forked that borrows its parent's memory until it executes counts doubly, and programs may be
        started one after the other. So only processes met before count at once; with new ones the limit has to be
        passed for LASTING looks in a row.
        """
        limit = self._settings.memory
        known = [process for process in alive if process.pid in self._known]
        self._known = {process.pid for process in alive}
        used = sum(process.rss for process in alive)
        if used > limit:
            used = processes.own_memory(alive)
        self._over = self._over + 1 if used > limit else 0
        self._over_known = self._over_known + 1 if used > limit and processes.own_memory(known) > limit else 0
        if self._over_known == 2 or self._over == LASTING:
            return f"memory: {used >> 20} MB in use, {limit >> 20} MB allowed"
        return None

    def _look(self) -> str | None:
        settings = self._settings
        alive = processes.descendants()
        memory = self._memory(alive)
        if memory is not None:
            return memory
        threads = sum(process.threads for process in alive if not process.ended)
        if threads > settings.processes:
            return f"processes: {threads}, {settings.processes} allowed"
        used_s = processes.cpu_seconds(alive) - self._cpu_before
        if used_s > settings.cpu_s:
            return f"cpu: {settings.cpu_s:g} s of processor time"
        if settings.isolated:
            space = os.statvfs(settings.base)
            if space.f_files - space.f_ffree > self._files:
                return f"files: {self._files} allowed"
        return None
