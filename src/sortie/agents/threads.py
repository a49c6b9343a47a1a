"""Run a blocking function off the event loop, and leave it behind when it hangs.

Threads are daemons, so that a function which never returns cannot keep the process alive (the threads of
`asyncio.to_thread` are joined at exit).
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_abandoned: list[threading.Thread] = []


def abandoned_threads() -> int:
    """How many threads run on although nobody waits for them any more."""
    _abandoned[:] = [thread for thread in _abandoned if thread.is_alive()]
    return len(_abandoned)


async def in_thread(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `function` in a daemon thread of its own, in a copy of the caller's context.

    When the caller is cancelled (a time-out), the thread is abandoned and counted.
    Raises: whatever the function raises; SystemExit and its like become RuntimeError, so that they end one call only.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()
    context = contextvars.copy_context()

    def settle(set_outcome: Callable[[Any], None], outcome: Any) -> None:
        if not future.done():
            set_outcome(outcome)

    def work() -> None:
        set_outcome: Callable[[Any], None]
        outcome: Any
        try:
            set_outcome, outcome = future.set_result, context.run(function, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001  # a thread has nowhere to raise to: the caller gets it
            set_outcome, outcome = future.set_exception, _plain(error)
        try:
            loop.call_soon_threadsafe(settle, set_outcome, outcome)
        except RuntimeError:  # the loop has closed: nobody waits
            return

    name = getattr(getattr(function, "func", function), "__name__", "call")  # the function inside a partial
    thread = threading.Thread(target=work, daemon=True, name=f"sortie-{name}")
    thread.start()
    try:
        return await future
    except asyncio.CancelledError:
        _abandoned.append(thread)
        raise


def _plain(error: BaseException) -> Exception:
    if isinstance(error, Exception) and not isinstance(error, StopIteration):  # a future refuses StopIteration
        return error
    plain = RuntimeError(f"{type(error).__name__}: {error}")
    plain.__cause__ = error
    return plain
