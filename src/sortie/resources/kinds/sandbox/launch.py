"""Start the first process of a sandbox, isolated the best way this machine offers.

Nothing of the host reaches it: an empty environment, closed file descriptors, a session of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import struct
import sys
from asyncio.subprocess import Process
from dataclasses import dataclass
from typing import Any

from sortie.core.errors import ResourceError, UsageError
from sortie.resources.kinds.sandbox import commands
from sortie.resources.kinds.sandbox.scratch import Scratch
from sortie.resources.kinds.sandbox.spec import SandboxSpec

log = logging.getLogger("sortie")

START_S = 20.0
"""How long a sandbox may take to report that it is ready."""
UID_BASE = 0x7000_0000
"""Under root each sandbox's code runs as this uid plus the sandbox's process id: nobody else's, so that the kernel's
count of its processes is its own. Above the ranges that systemd (0x80000 to 0x6FFFFFFF) and subuid files hand out."""
KINDS = ("bubblewrap", "namespaces")
"""In order of preference."""

_found: str | None = None
"""The isolation that `auto` has found to work."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A first process that is ready for commands."""

    process: Process
    isolation: str
    scratch: Scratch | None
    """Its folder on the host, where it has one."""


async def launch(spec: SandboxSpec) -> Launched:
    """Start the first process of a sandbox.

    Raises: UsageError, with the reason for each way tried, if none works here; ResourceError if one that did work
    before now does not.
    """
    global _found
    if spec.isolation == "none":
        log.warning("sandbox with isolation='none': limits only; its code can read and change what this user can")
        return await _attempt("none", spec)
    if spec.isolation == "auto" and _found is not None:
        return await _attempt(_found, spec)
    reasons = []
    for kind in KINDS if spec.isolation == "auto" else (spec.isolation,):
        try:
            launched = await _attempt(kind, spec)
        except ResourceError as error:
            reasons.append(f"{kind}: {error}")
        else:
            if spec.isolation == "auto":
                _found = kind
            return launched
    raise UsageError(
        f"no sandbox can be isolated here ({'; '.join(reasons)}). Install bubblewrap (apt-get install bubblewrap) and "
        "allow user namespaces, or accept none with isolation='none'"
    )


async def available() -> dict[str, str | None]:
    """Every way to isolate: None where it works on this machine, else why not."""
    found: dict[str, str | None] = {}
    for kind in KINDS:
        try:
            launched = await _attempt(kind, SandboxSpec())
        except ResourceError as error:
            found[kind] = str(error)
        else:
            found[kind] = None
            await _end(launched.process)
    return found


async def _attempt(kind: str, spec: SandboxSpec) -> Launched:
    if not sys.platform.startswith("linux"):
        raise ResourceError("sandboxes need Linux")
    scratch = Scratch.make() if kind == "none" else None
    try:
        argv = commands.build(kind, spec.disk_mb << 20)
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={},
            cwd="/",
            start_new_session=True,
            pass_fds=() if scratch is None else (scratch.lock_fd,),
        )
    except BaseException as error:
        if scratch is not None:
            scratch.remove()
        if isinstance(error, OSError):
            raise ResourceError(str(error)) from None
        raise
    try:
        await _greet(process, _config(kind, spec, process.pid, scratch))
    except BaseException:
        await asyncio.shield(_end(process))
        if scratch is not None:
            scratch.remove()
        raise
    if scratch is not None:
        scratch.hand_over()
    return Launched(process, kind, scratch)


def _config(kind: str, spec: SandboxSpec, pid: int, scratch: Scratch | None) -> dict[str, Any]:
    return {
        "kind": kind,
        "uid": UID_BASE + pid if kind != "none" and commands.privileged() else None,
        "base": commands.BASE if scratch is None else str(scratch.path),
        "seen": commands.seen() if kind == "namespaces" else None,
        "devices": commands.DEVICES,
        "shm": commands.SHM_BYTES,
        "bin": commands.BIN,
        "python": commands.interpreter(),
        "program": commands.program(kind),
        "env": dict(spec.env),
        "memory": spec.memory_mb << 20,
        "cpu_s": spec.cpu_seconds,
        "cores": spec.cores,
        "processes": spec.processes,
        "file": spec.file_mb << 20,
        "disk": spec.disk_mb << 20,
    }


async def _greet(process: Process, config: dict[str, Any]) -> None:
    """Send the settings, wait for the answer. Raises: ResourceError with what the launcher said."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    data = json.dumps(config).encode()
    process.stdin.write(struct.pack(">I", len(data)) + data)
    try:
        async with asyncio.timeout(START_S):
            size = struct.unpack(">I", await process.stdout.readexactly(4))[0]
            answer = json.loads(await process.stdout.readexactly(size))
    except asyncio.IncompleteReadError:
        said = (await process.stderr.read()).decode(errors="replace").strip().splitlines()
        code = await process.wait()
        raise ResourceError(said[-1] if said else f"ended at once with code {code}") from None
    except TimeoutError:
        raise ResourceError(f"not ready within {START_S:g} s") from None
    if "error" in answer:
        raise ResourceError(answer["error"])


async def _end(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
