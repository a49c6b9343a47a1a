"""Start a confined child of the first process, with pipes to it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Sequence

from .confine import confine
from .settings import Settings

NOT_FOUND, NOT_STARTED = 127, 126
CODE_FD, DONE_FD = 3, 4
"""Of a Python program that is kept: where its code comes from, and where it says that it is through."""
_SPARE = 50


class Child:
    """One process and this side of its pipes."""

    def __init__(self, pid: int, output: int, feed: int, done: int | None) -> None:
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self.output = output
        """Standard output and standard error."""
        self.feed = feed
        """Standard input; of a Python program its code."""
        self.done = done

    def close(self) -> None:
        """Close the pipes."""
        for fd in (self.pidfd, self.output, self.feed, self.done):
            if fd is not None and fd >= 0:
                os.close(fd)
        self.pidfd = self.output = self.feed = -1
        self.done = None

    def stop_feeding(self) -> None:
        """Let it see the end of its input."""
        os.close(self.feed)
        self.feed = -1


def spawn(settings: Settings, work: Callable[[], None], *, program: bool = False) -> Child:
    """Run `work` in a confined child; it should execute something or exit.

    `program`: standard input is empty, and two more pipes lie at CODE_FD and DONE_FD.
    """
    output, feed = os.pipe(), os.pipe()
    done = os.pipe() if program else None
    pid = os.fork()
    if pid == 0:
        _become(settings, work, output[1], feed[0], None if done is None else done[1])
    for fd in (output[1], feed[0], *([] if done is None else [done[1]])):
        os.close(fd)
    os.set_blocking(output[0], False)
    os.set_blocking(feed[1], False)
    return Child(pid, output[0], feed[1], None if done is None else done[0])


def execute(argv: Sequence[str], settings: Settings) -> Callable[[], None]:
    """Work for `spawn`: become a program."""

    def work() -> None:
        try:
            os.execvpe(argv[0], list(argv), settings.environment)
        except FileNotFoundError:
            os.write(2, f"sandbox: no such command: {argv[0]!r}\n".encode())
            os._exit(NOT_FOUND)

    return work


def _become(settings: Settings, work: Callable[[], None], output: int, feed: int, done: int | None) -> None:
    try:
        os.setsid()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, _SPARE) for fd in (feed, output, *(() if done is None else (done,)))]
        if done is None:
            os.dup2(high[0], 0)
        else:
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(high[0], CODE_FD)
            os.dup2(high[2], DONE_FD)
        os.dup2(high[1], 1)
        os.dup2(high[1], 2)
        os.closerange(3 if done is None else DONE_FD + 1, 4096)
        confine(settings, timed=done is None)
        work()
    except BaseException as error:  # noqa: BLE001  # this is the forked copy: nothing may escape into the first process
        os.write(2, f"sandbox: {error}\n".encode(errors="replace"))
    finally:
        os._exit(NOT_STARTED)
