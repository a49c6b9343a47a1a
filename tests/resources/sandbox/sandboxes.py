"""Sandboxes for tests, and a look at their processes from the host."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from sortie.resources.kinds.sandbox.sandbox import Sandbox
from sortie.resources.kinds.sandbox.spec import SandboxSpec

SMALL = SandboxSpec(memory_mb=128, processes=32, file_mb=4, disk_mb=8, cpu_seconds=20, wall_s=20)
"""Small enough that a limit that does not hold would not hurt the machine either."""


@asynccontextmanager
async def opened(kind: str, **changes: Any) -> AsyncIterator[Sandbox]:
    sandbox = await replace(SMALL, isolation=kind, **changes).start()
    try:
        yield sandbox
    finally:
        await sandbox.close()


def host_processes(below: int) -> set[int]:
    """Processes of the host that descend from one, itself not included, nor those that only wait to be reaped."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            parents[int(name)] = int(parent)
    found, front = set(), [below]
    while front:
        new = [pid for pid, parent in parents.items() if parent == front[-1]]
        front.pop()
        found |= set(new)
        front += new
    return found
