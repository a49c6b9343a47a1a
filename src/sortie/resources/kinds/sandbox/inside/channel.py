"""Frames from and to the host: a length of four bytes, then that much JSON."""

from __future__ import annotations

import json
import os
import struct
from collections import deque
from typing import Any


class Closed(Exception):  # noqa: N818  # not an error: how every sandbox ends
    """The host has let go: nothing in the sandbox may go on."""


class Channel:
    """Two file descriptors of the first process."""

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self._sink = sink
        self._buffer = bytearray()
        self.inbox: deque[dict[str, Any]] = deque()
        """Frames that have arrived and are not yet handled."""

    def next(self) -> dict[str, Any]:
        """The next frame; waits for it. Raises: Closed."""
        while not self.inbox:
            self.take_in()
        return self.inbox.popleft()

    def take_in(self) -> None:
        """Read what is there, at least a byte. Raises: Closed."""
        data = os.read(self.source, 1 << 16)
        if not data:
            raise Closed
        self._buffer += data
        while len(self._buffer) >= 4:
            size = struct.unpack_from(">I", self._buffer)[0]
            if len(self._buffer) < 4 + size:
                break
            self.inbox.append(json.loads(bytes(self._buffer[4 : 4 + size])))
            del self._buffer[: 4 + size]

    def send(self, frame: dict[str, Any]) -> None:
        """Write a frame. Raises: Closed."""
        data = json.dumps(frame).encode()
        pending = memoryview(struct.pack(">I", len(data)) + data)
        try:
            while pending:
                pending = pending[os.write(self._sink, pending) :]
        except BrokenPipeError:
            raise Closed from None
