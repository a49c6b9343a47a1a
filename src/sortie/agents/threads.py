"""Run a blocking function off the event loop, and leave it behind when it hangs.

Threads are daemons, so that a function which never returns cannot keep the process alive (the threads of
`asyncio.to_thread` are joined at exit), and their number is not capped, so that functions which hang cannot starve the
others. Idle ones are used again: starting a thread can take milliseconds on a busy machine.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

MOST_IDLE = 32
"""Threads kept for the next call."""


class _Worker(threading.Thread):
    """Runs one job after another."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def run(self) -> None:
        while True:
            self.jobs.get()()
            if len(_idle) >= MOST_IDLE:
                return
            _idle.append(self)


_idle: list[_Worker] = []
_abandoned: list[threading.Event] = []
"""One event per call that was given up; set when it ends after all."""


def abandoned_threads() -> int:
    """How many threads run on although nobody waits for them any more."""
    _abandoned[:] = [ended for ended in _abandoned if not ended.is_set()]
    return len(_abandoned)


async def in_thread(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `function` in a daemon thread, in a copy of the caller's context.

    When the caller is cancelled (a time-out), the thread is abandoned and counted.
    Raises: whatever the function raises; SystemExit and its like become RuntimeError, so that they end one call only.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()
    context, ended = contextvars.copy_context(), threading.Event()
    name = getattr(getattr(function, "func", function), "__name__", "call")  # the function inside a partial

    def settle(set_outcome: Callable[[Any], None], outcome: Any) -> None:
        if not future.done():
            set_outcome(outcome)

    def work() -> None:
        threading.current_thread().name = f"sortie-{name}"
        set_outcome: Callable[[Any], None]
        outcome: Any
        try:
            set_outcome, outcome = future.set_result, context.run(function, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001  # a thread has nowhere to raise to: the caller gets it
            set_outcome, outcome = future.set_exception, _plain(error)
        ended.set()
        try:
            loop.call_soon_threadsafe(settle, set_outcome, outcome)
        except RuntimeError:  # the loop has closed: nobody waits
            return

    _worker().jobs.put(work)
    try:
        return await future
    except asyncio.CancelledError:
        _abandoned.append(ended)
        raise


def _worker() -> _Worker:
    try:
        return _idle.pop()
    except IndexError:
        worker = _Worker()
        worker.start()
        return worker


def _plain(error: BaseException) -> Exception:
    if isinstance(error, Exception) and not isinstance(error, StopIteration):  # a future refuses StopIteration
        return error
    plain = RuntimeError(f"{type(error).__name__}: {error}")
    plain.__cause__ = error
    return plain
