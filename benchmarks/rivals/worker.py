"""Processes that take turns: each holds one contestant, loaded and warm, and works only when asked.

`with Worker(...) as worker: worker.ask(...)`. A worker is a process group of its own; it is killed when the block is
left, however that happens, and ends by itself when its starter is gone. Every wait has a deadline.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from benchmarks.rivals.venv import RivalError

ROOT = Path(__file__).resolve().parents[2]
START_S = 180.0
"""Longest wait for a worker to load its libraries and its model."""
ANSWER_S = 300.0
"""Longest wait for one piece of work."""


class Worker:
    """One contestant: `python -m MODULE SETTINGS`, which sends one message when ready and one for each it gets."""

    def __init__(self, name: str, module: str, settings: Mapping[str, Any], *, python: Path | None = None) -> None:
        self.name = name
        self.ready: dict[str, Any] = {}
        """What it said once it was ready."""
        self._command = [str(python or sys.executable), "-m", module, json.dumps(settings)]
        self._rest = b""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        )
        try:
            self.ready = self._answer(START_S)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, *, deadline_s: float = ANSWER_S, **message: Any) -> dict[str, Any]:
        """Have it do one piece of work, and wait for what came out.

        Raises: RivalError if it died or did not answer in time.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        return self._answer(deadline_s)

    def close(self) -> None:
        """Kill it and everything it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]

    def _answer(self, deadline_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        pipe, until = self._process.stdout.fileno(), time.monotonic() + deadline_s
        while b"\n" not in self._rest:
            readable, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
            if not readable:
                raise RivalError(f"{self.name} did not answer within {deadline_s:g} s")
            piece = os.read(pipe, 1 << 16)
            if not piece:
                raise self._died()
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _died(self) -> RivalError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)
        if self._process.returncode == -signal.SIGKILL:
            return RivalError(f"{self.name} was killed, most likely because memory ran out")
        self._log.seek(0)
        lines = [line for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
        return RivalError(f"{self.name} died: {lines[-1].strip() if lines else 'it said nothing'}")
