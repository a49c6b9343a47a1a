"""The worker's end of a conversation in lines of JSON, and what a process can say about its own memory.

Standard library only: rivals' environments hold no Sortie.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

MIB = 2**20


class Channel:
    """Messages to and from whoever started this process. Whatever else prints to standard output goes to the log."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def send(self, **message: Any) -> None:
        """One line."""
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    def receive(self) -> dict[str, Any] | None:
        """The next message, waiting without using the processor; None: the starter is gone, or wants no more."""
        line = sys.stdin.readline()
        return json.loads(line) if line else None


def forget_peak() -> None:
    """Have `peak_mib` count from now on, where the system can."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        pass  # then loading the model may hide a lower peak: that can only flatter a rival and us alike


def resident_mib() -> float:
    """Memory this process holds now."""
    return _status("VmRSS")


def peak_mib() -> float:
    """Most memory this process has held since `forget_peak`."""
    return _status("VmHWM")


def _status(field: str) -> float:
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
    raise OSError(f"/proc/self/status has no {field}")
