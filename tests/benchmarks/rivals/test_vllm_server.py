"""The server's life, with a stand-in for vLLM: what is started is always killed, and sleeps while others measure."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.rivals import vllm_server
from benchmarks.rivals.venv import RivalError
from benchmarks.rivals.vllm_server import VllmServer, read_counters

STAND_IN = """
import json, subprocess, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer("vllm:prompt_tokens_total{engine=\\"0\\"} 100.0\\nvllm:prefix_cache_hits_total 30.0\\n")
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        n = asked["max_tokens"] - (asked["model"] == "short")
        one = lambda i: {"index": i, "token_ids": [i] * n, "logprobs": {"token_logprobs": [-1.0] * n}}
        self.answer(json.dumps({"choices": [one(i) for i in reversed(range(len(asked["prompt"])))]}))
    def answer(self, text):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())
    def log_message(self, *_):
        pass
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have the server run this script in place of vLLM."""

    def use(script: str) -> None:
        (tmp_path / "server.py").write_text(script)
        monkeypatch.setattr(vllm_server, "python", lambda: Path(sys.executable))
        monkeypatch.setattr(
            VllmServer, "arguments", lambda self, port: [str(tmp_path / "server.py"), str(port), str(self.folder)]
        )

    use(STAND_IN)
    return use


def states(session: int) -> list[str]:
    """States of the session's processes: T for stopped; ended ones that nobody waited for do not count."""
    return [fields[0] for fields in vllm_server._stats_of_session(session) if fields[0] != "Z"]


def becomes(session: int, wanted: Callable[[list[str]], bool]) -> bool:
    """Whether its states are as wanted before long: a signal takes a moment to arrive."""
    deadline = time.monotonic() + 10
    while not wanted(states(session)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return wanted(states(session))


def asleep(session: int) -> bool:
    return becomes(session, lambda found: found == ["T", "T"])


def gone(session: int) -> bool:
    return becomes(session, lambda found: not found)


def test_it_sleeps_unless_it_is_awake_and_is_gone_afterwards(stand_in: object, tmp_path: Path) -> None:
    with VllmServer(tmp_path) as server:
        assert server._process is not None
        session = server._process.pid
        assert asleep(session)
        with server.awake():
            assert server.complete([[1], [2]], 3) == [[0, 0, 0], [1, 1, 1]]
            assert server.prefilled() == 70.0
            assert becomes(session, lambda found: "T" not in found)
        assert asleep(session)
    assert gone(session)


def test_it_is_gone_after_an_error(stand_in: object, tmp_path: Path) -> None:
    sessions: list[int] = []

    def fail() -> None:
        with VllmServer(tmp_path) as server:
            assert server._process is not None
            sessions.append(server._process.pid)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert gone(sessions[0])


def test_it_is_gone_when_its_starter_was_killed(stand_in: object, tmp_path: Path) -> None:
    script = f"""
import os, sys
from pathlib import Path
from benchmarks.rivals import vllm_server
from benchmarks.rivals.vllm_server import VllmServer
vllm_server.python = lambda: Path(sys.executable)
VllmServer.arguments = lambda self, port: [{str(tmp_path / "server.py")!r}, str(port)]
with VllmServer(Path()) as server:
    print(server._process.pid, flush=True)
    os.kill(os.getpid(), 9)
"""
    root = Path(vllm_server.__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode == -9, done.stderr
    assert gone(int(done.stdout))


def test_a_server_that_ends_on_its_start_is_one_line_with_its_last_error(
    stand_in: Callable[[str], None], tmp_path: Path
) -> None:
    stand_in("print('INFO fine'); raise SystemExit('ValueError: no such model\\nINFO bye')")
    with pytest.raises(RivalError, match=r"ended with code 1 on its start: ValueError: no such model$"):
        VllmServer(tmp_path).__enter__()


def test_a_server_that_never_answers_meets_its_deadline(
    stand_in: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in("import time; time.sleep(600)")
    monkeypatch.setattr(vllm_server, "START_S", 0.3)
    server = VllmServer(tmp_path)
    with pytest.raises(RivalError, match=r"not up within 0\.3 s"):
        server.__enter__()


def test_a_completion_of_another_length_is_refused(stand_in: object, tmp_path: Path) -> None:
    with VllmServer(tmp_path) as server, server.awake(), pytest.raises(RivalError, match="drew 2 tokens, 3 were asked"):
        server.complete([[1]], 3, model="short")


def test_counters_are_summed_over_labels() -> None:
    page = '# HELP x\nvllm:prompt_tokens_total{engine="0"} 5.0\nvllm:prompt_tokens_total{engine="1"} 6.0\n'
    page += "vllm:prompt_tokens_total_other 9.0\nvllm:generation_tokens_total 2.0\n"
    assert read_counters(page) == {"prompt": 11.0, "cached": 0, "decoded": 2.0}


def test_the_command_line_serves_the_adapter_under_its_own_name(tmp_path: Path) -> None:
    plain = VllmServer(tmp_path).arguments(80)
    adapted = VllmServer(tmp_path, adapter=tmp_path / "a", rank=16).arguments(80)
    assert "--enable-lora" not in plain
    assert f"{vllm_server.ADAPTER}={tmp_path / 'a'}" in adapted
    assert json.dumps(adapted).count("bfloat16") == 1
