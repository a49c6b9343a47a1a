"""Where the files of a rollout are: a sandbox of its own, or memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from sortie.context.run_context import RunContext
from sortie.core.errors import ResourceError
from sortie.core.task import Task
from sortie.envs.catalog.filesystem.tree import MemoryTree, Tree
from sortie.resources.kinds.sandbox.spec import SandboxSpec

if TYPE_CHECKING:
    from sortie.resources.kinds.sandbox.sandbox import Sandbox

SANDBOX = SandboxSpec(memory_mb=64, disk_mb=8, processes=8)

TOP = "files"
"""The folder of the sandbox that holds them."""


class SandboxTree(Tree):
    """Files in a sandbox. What is there is asked of the sandbox each time, never remembered."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__()
        self._sandbox = sandbox

    async def _paths(self) -> list[str]:
        found = await self._sandbox.run(["find", TOP, "-type", "f"])
        if found.exit_code:
            raise ResourceError(f"cannot list the files in the sandbox: {found.killed_reason or found.output.strip()}")
        return [line.removeprefix(f"{TOP}/") for line in found.output.splitlines()]

    async def _get(self, path: str) -> str:
        return await self._sandbox.read(f"{TOP}/{path}")

    async def _put(self, path: str, text: str) -> None:
        await self._sandbox.write(f"{TOP}/{path}", text)

    async def _drop(self, path: str) -> None:
        """A folder that this empties goes too: a directory is there for as long as a file is in it."""
        script = 'cd "$1" && rm -f -- "$2" && rmdir -p -- "${2%/*}" 2>&-'
        await self._sandbox.run(["sh", "-c", script, "sh", TOP, path])


@asynccontextmanager
async def in_sandbox(task: Task, ctx: RunContext) -> AsyncIterator[Tree]:
    """The files as the task starts them, in this rollout's sandbox."""
    sandbox = ctx.lease(SANDBOX)
    for path, text in task.data["files"].items():
        await sandbox.write(f"{TOP}/{path}", text)
    yield SandboxTree(sandbox)


@contextmanager
def in_memory(task: Task, ctx: RunContext) -> Iterator[Tree]:
    """The files as the task starts them, in memory."""
    yield MemoryTree(task.data["files"])
