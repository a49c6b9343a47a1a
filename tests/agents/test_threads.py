from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from sortie.agents.threads import in_thread

WHO = contextvars.ContextVar("WHO", default="nobody")


async def test_a_call_runs_elsewhere_in_the_callers_context() -> None:
    WHO.set("me")
    assert await in_thread(WHO.get) == "me"
    assert await in_thread(threading.get_ident) != threading.get_ident()


async def test_exceptions_cross_to_the_caller() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await in_thread(int, "x")


async def test_calls_do_not_wait_for_each_other() -> None:
    """One that hangs must not starve the rest: far more at once than a default thread pool has."""
    barrier = threading.Barrier(50)
    await asyncio.wait_for(asyncio.gather(*(in_thread(barrier.wait) for _ in range(50))), 20)


async def test_threads_are_used_again() -> None:
    names = {await in_thread(threading.get_ident) for _ in range(20)}
    assert len(names) <= 3


def test_a_call_that_never_returns_does_not_keep_the_process_alive() -> None:
    """Pain E2: were the thread joined at exit, this process would not end."""
    script = """
import asyncio, threading
from sortie.agents.threads import in_thread
async def main():
    try:
        await asyncio.wait_for(in_thread(threading.Event().wait), 0.01)
    except TimeoutError:
        print("went on")
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "went on\n"
