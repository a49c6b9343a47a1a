"""Attend one command: feed it, take what it writes, end it when it passes a limit, leave nothing of it behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
from collections.abc import Collection
from typing import Any

from . import processes
from .channel import Channel
from .children import Child
from .watch import TICK_S, Watch

OUTPUT_BYTES = 1 << 20
_CHUNK = 1 << 16


class Command:
    """One command from its start to its result."""

    def __init__(self, child: Child, channel: Channel, watch: Watch, feed: bytes, most: int = OUTPUT_BYTES) -> None:
        self._child = child
        self._channel = channel
        self._watch = watch
        self._feed = memoryview(feed)
        self._most = most
        self._output = bytearray()
        self._dropped = 0
        self._done: int | None = None
        self.statuses: dict[int, int] = {}

    def attend(self, number: int, keep: Collection[int] = ()) -> dict[str, Any]:
        """Return its result once it has ended and nothing it started is left. `keep`: processes to leave alone.

        Raises: Closed; RuntimeError if its processes cannot be ended.
        """
        reason = self._until_over(number)
        kept = set(keep)
        if self._done is not None and reason is None:  # a program that waits for more: it sleeps until then
            os.kill(self._child.pid, signal.SIGSTOP)
            kept.add(self._child.pid)
        processes.end_all(kept, self.statuses)
        self._read()
        code = self._done
        if code is None or reason is not None:
            code = os.waitstatus_to_exitcode(self.statuses.get(self._child.pid, signal.SIGKILL))
        return {
            "id": number,
            "output": self._text(),
            "exit_code": code,
            "timed_out": self._watch.timed_out,
            "killed_reason": reason,
        }

    def _until_over(self, number: int) -> str | None:
        child = self._child
        poll = select.poll()
        for fd in (self._channel.source, child.output, child.pidfd, *(() if child.done is None else (child.done,))):
            poll.register(fd, select.POLLIN)
        if self._feed:
            poll.register(child.feed, select.POLLOUT)
        elif child.done is None:
            child.stop_feeding()
        while (reason := self._watch.passed()) is None:
            ready = {fd for fd, _ in poll.poll(TICK_S * 1000)}
            if self._channel.source in ready:
                self._channel.take_in()
                if any(frame["op"] == "abort" and frame["id"] == number for frame in self._channel.inbox):
                    return "aborted"
            if child.feed in ready and not self._feed_some():
                poll.unregister(child.feed)
                if child.done is None:
                    child.stop_feeding()
            if child.output in ready and not self._read_some():
                poll.unregister(child.output)
            if child.done is not None and child.done in ready:
                said = os.read(child.done, 4)
                self._done = struct.unpack(">i", said)[0] if len(said) == 4 else None
                if self._done is not None:
                    return None
                poll.unregister(child.done)
            processes.reap(self.statuses)
            if child.pid in self.statuses:
                return None
        return reason

    def _feed_some(self) -> bool:
        try:
            self._feed = self._feed[os.write(self._child.feed, self._feed[:_CHUNK]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:  # it does not read what it is given
            return False
        return bool(self._feed)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._read_some():
                pass

    def _read_some(self) -> bool:
        data = os.read(self._child.output, _CHUNK)
        room = self._most - len(self._output)
        self._output += data[:room]
        self._dropped += len(data[room:])
        return bool(data)

    def _text(self) -> str:
        text = self._output.decode("utf-8", "replace")
        return text + f"\n[{self._dropped} more bytes]" if self._dropped else text
