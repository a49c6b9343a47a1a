"""One sandbox, seen from outside.

Its first process (see `inside`) obeys frames on its standard input and ends, and with it everything in the sandbox,
when that closes: by `close`, or because this process is gone. Files live in its private memory file system, so nothing
is left on the host either way.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Self

from sortie.core.errors import ResourceError
from sortie.resources.kinds.sandbox.launch import Launched, launch
from sortie.resources.kinds.sandbox.spec import SandboxSpec

GRACE_S = 5.0
"""How much later than its own deadline a command's result may come, before the sandbox counts as broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How one command ended."""

    output: str
    """What it wrote to standard output and standard error, in order; the first megabyte."""
    exit_code: int
    """As of the process; minus the signal's number where one ended it."""
    timed_out: bool = False
    killed_reason: str | None = None
    """The limit that was passed, with its value; None: it ended by itself."""


class Sandbox:
    """A started sandbox. One command at a time: a second one waits for the first."""

    def __init__(self, spec: SandboxSpec, launched: Launched) -> None:
        """Use `start`."""
        self.spec = spec
        self.isolation = launched.isolation
        """What isolates it: bubblewrap, namespaces or none."""
        self._process = launched.process
        self._turn = asyncio.Lock()
        self._last_id = 0
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read_replies())
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, spec: SandboxSpec) -> Self:
        """Start a sandbox.

        Raises: UsageError if this machine offers no such isolation; ResourceError if it did not start.
        """
        return cls(spec, await launch(spec))

    @property
    def pid(self) -> int:
        """Process on the host whose end ends the sandbox."""
        return self._process.pid

    @property
    def closed(self) -> bool:
        """Whether it has ended or is being ended."""
        return self._closing is not None or self._process.returncode is not None

    async def run(self, argv: Sequence[str], *, timeout_s: float | None = None, stdin: str | None = None) -> RunResult:
        """Run a command in the sandbox's own directory; `python` is this interpreter without its packages.

        When it ends, so do all processes it started. At most `spec.wall_s` seconds, whatever `timeout_s` says.
        Raises: ValueError for an empty command; ResourceError if the sandbox is closed or broke.
        """
        if not argv:
            raise ValueError("an empty command: argv must name a program")
        return await self._command({"op": "run", "argv": list(argv), "stdin": stdin or ""}, timeout_s)

    async def python(self, code: str, *, timeout_s: float | None = None, keep_state: bool | None = None) -> RunResult:
        """Execute `code` as a main program: one namespace, as in a file of its own.

        With `keep_state` (default: the spec's) the next such call finds what this one defined. The state is lost when
        a call passes a limit; `killed_reason` then says why.
        Raises: ResourceError if the sandbox is closed or broke.
        """
        keep = self.spec.keep_state if keep_state is None else keep_state
        return await self._command({"op": "python", "code": code, "keep": keep}, timeout_s)

    async def write(self, path: str | PurePosixPath, text: str) -> None:
        """Write a file, making its folders; with the rights of the sandbox's own code, no more.

        Raises: OSError as the sandbox's file system does (full, too large, no right).
        """
        await self._file("write", path, text)

    async def read(self, path: str | PurePosixPath) -> str:
        """The text of a regular file; bytes that are not UTF-8 become U+FFFD.

        Raises: OSError, as FileNotFoundError.
        """
        return await self._file("read", path)

    async def list(self, path: str | PurePosixPath = ".") -> list[str]:
        """Names in a folder, sorted; those of folders end in a slash.

        Raises: OSError, as NotADirectoryError.
        """
        names: list[str] = json.loads(await self._file("list", path))
        return names

    async def close(self) -> None:
        """End everything in it. Idempotent; returns when nothing is left."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _file(self, action: str, path: str | PurePosixPath, text: str = "") -> str:
        request = {"op": "file", "action": action, "path": str(path), "stdin": text}
        reply = await self._ask(request, self.spec.wall_s)
        if reply["killed_reason"] is not None:
            # The code's doing, not the machine's: a ResourceError would be retried.
            raise OSError(errno.EIO, f"could not {action} in the sandbox ({reply['killed_reason']})", str(path))
        if reply["exit_code"]:
            raise OSError(reply["exit_code"], os.strerror(reply["exit_code"]), str(path))
        return str(reply["output"])

    async def _command(self, request: dict[str, Any], timeout_s: float | None) -> RunResult:
        reply = await self._ask(request, min(timeout_s or self.spec.wall_s, self.spec.wall_s))
        return RunResult(**{name: reply[name] for name in RunResult.__slots__})

    async def _ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        async with self._turn:
            if self.closed:
                raise ResourceError("the sandbox is closed")
            self._last_id += 1
            reply = self._replies[self._last_id] = asyncio.get_running_loop().create_future()
            try:
                self._send({**request, "id": self._last_id, "timeout_s": timeout_s})
                async with asyncio.timeout(timeout_s + GRACE_S):
                    answer: dict[str, Any] = await reply
                return answer
            except TimeoutError:
                await self.close()
                raise ResourceError(f"the sandbox did not answer within {timeout_s + GRACE_S:g} s; ended it") from None
            except asyncio.CancelledError:  # nobody waits for the command any more: end it, keep the sandbox
                self._send({"op": "abort", "id": self._last_id})
                raise
            finally:
                self._replies.pop(self._last_id, None)

    def _send(self, frame: dict[str, Any]) -> None:
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            data = json.dumps(frame).encode()
            self._process.stdin.write(struct.pack(">I", len(data)) + data)

    async def _read_replies(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                size = struct.unpack(">I", await self._process.stdout.readexactly(4))[0]
                reply = json.loads(await self._process.stdout.readexactly(size))
                waiting = self._replies.get(reply["id"])
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        except asyncio.IncompleteReadError:
            for waiting in self._replies.values():
                if not waiting.done():
                    waiting.set_exception(ResourceError("the sandbox ended while a command ran in it"))

    async def _close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(GRACE_S):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
        await self._reading
