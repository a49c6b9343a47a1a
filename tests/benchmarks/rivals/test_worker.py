from __future__ import annotations

import os
import time
from pathlib import Path
from textwrap import dedent

import pytest

from benchmarks.rivals import worker as module
from benchmarks.rivals.turns import rounds, seconds, speedup, spread, target
from benchmarks.rivals.venv import RivalError
from benchmarks.rivals.worker import Worker

ECHO = """
    import json, os, sys, time
    sys.path.insert(0, {root!r})
    from benchmarks.rivals.channel import Channel, forget_peak, peak_mib, resident_mib
    channel = Channel()
    print("chatter of a library")
    forget_peak()
    channel.send(pid=os.getpid(), settings=json.loads(sys.argv[1]), peak=peak_mib(), resident=resident_mib())
    while (order := channel.receive()) is not None:
        if order.get("die"):
            raise ValueError("no more memory")
        time.sleep(order.get("sleep", 0))
        channel.send(seconds=order["n"] / 10)
"""


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a module that answers what it is asked."""
    (tmp_path / "echo_worker.py").write_text(dedent(ECHO.format(root=str(module.ROOT))), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "echo_worker"


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_worker_gets_its_settings_and_answers_only_through_its_channel(echo: str) -> None:
    with Worker("echo", echo, {"model": "m"}) as worker:
        assert worker.ready["settings"] == {"model": "m"}
        assert worker.ready["peak"] >= worker.ready["resident"] * 0.9 > 1
        assert worker.ask(n=3) == {"seconds": 0.3}


def test_a_worker_is_killed_when_its_block_fails(echo: str) -> None:
    worker = Worker("echo", echo, {})

    def fail() -> None:
        with worker:
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert gone(worker.ready["pid"])


def test_a_worker_that_dies_is_an_error_with_its_last_words(echo: str) -> None:
    with Worker("echo", echo, {}) as worker, pytest.raises(RivalError, match="echo died: ValueError: no more memory"):
        worker.ask(die=True)


def test_a_worker_that_is_too_slow_is_an_error_at_its_deadline(echo: str) -> None:
    with Worker("echo", echo, {}) as worker:
        started = time.monotonic()
        with pytest.raises(RivalError, match=r"did not answer within 0.2 s"):
            worker.ask(n=1, sleep=30, deadline_s=0.2)
        assert time.monotonic() - started < 10


def test_workers_take_turns_and_the_first_round_does_not_count(echo: str) -> None:
    with Worker("a", echo, {}) as a, Worker("b", echo, {}) as b:
        answers = rounds({"a": a, "b": b}, {"a": {"n": 10}, "b": {"n": 20}}, repeats=2)
    assert len(answers["a"]) == 3
    assert seconds(answers["a"]) == [1.0, 1.0]
    assert speedup(seconds(answers["a"]), seconds(answers["b"])) == {"value": 2.0, "low": 2.0, "high": 2.0}


def test_a_speedup_is_the_median_of_the_rounds_ratios_with_their_range() -> None:
    assert speedup([1.0, 2.0, 1.0], [2.0, 2.0, 3.0]) == {"value": 2.0, "low": 1.0, "high": 3.0}


def test_a_target_is_met_by_its_median_from_the_right_side() -> None:
    assert target("t", spread([1.0, 3.0, 4.0]), 3.0)["met"] is True
    assert target("t", spread([1.0, 3.0, 4.0]), 3.1)["met"] is False
    assert target("t", spread([0.4]), 0.5, at_most=True)["met"] is True
