"""The first process of a sandbox: prepares it, then obeys the host one command after the other.

It ends, and the kernel with it everything in its process namespace, when the host closes its end of the channel,
whatever the reason. It never runs the sandbox's code itself and reads no file of the sandbox.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
from collections.abc import Callable
from typing import Any

from . import files, libc, processes, root
from .channel import Channel, Closed
from .children import Child, execute, spawn
from .command import OUTPUT_BYTES, Command
from .settings import Settings
from .watch import FILES, Watch


def main() -> None:
    """Serve until the host lets go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(0, 1)
    try:
        settings = Settings(**channel.next())
        try:
            prepare(settings)
        except OSError as error:
            channel.send({"error": str(error)})
            return
        channel.send({"ready": True})
        First(settings, channel).serve()
    except Closed:
        pass


def prepare(settings: Settings) -> None:
    """Make the sandbox as the settings say. Raises: OSError if the system refuses."""
    libc.prctl(libc.PR_SET_DUMPABLE, 0)  # its memory and descriptors are not for processes of the same user
    libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1)
    if settings.seen is not None:
        sizes = [("/dev/shm", settings.shm), (settings.base, settings.disk)]
        root.enter(*settings.seen, settings.devices, sizes)
    for folder in (settings.files, f"{settings.base}/tmp"):
        os.mkdir(folder, 0o700)
        if settings.uid is not None:
            os.chown(folder, settings.uid, settings.uid)


class First:
    """The loop, and the Python program whose state is kept, if there is one."""

    def __init__(self, settings: Settings, channel: Channel) -> None:
        self._settings = settings
        self._channel = channel
        self._kept: Child | None = None

    def serve(self) -> None:
        """Obey. Raises: Closed."""
        try:
            while True:
                request = self._channel.next()
                if request["op"] != "abort":  # one that came too late: its command is over
                    self._channel.send(self._obey(request))
        finally:
            if not self._settings.isolated:  # no namespace that ends with this process
                import shutil  # slow to load, and only here of use

                processes.end_all((), {})
                shutil.rmtree(self._settings.base, ignore_errors=True)

    def _obey(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] == "python":
            return self._python(request)
        feed = request["stdin"].encode("utf-8", "replace")
        if request["op"] == "file":
            work = files.work(request["action"], request["path"])
            # The host may look at files also where the code made too many.
            watch = Watch(self._settings, request["timeout_s"], files=2 * FILES)
            return self._once(request, work, watch, feed, self._settings.file)
        argv = request["argv"]
        if argv[0] in ("python", "python3"):
            argv = [self._settings.python, *argv[1:]]
        return self._once(request, execute(argv, self._settings), Watch(self._settings, request["timeout_s"]), feed)

    def _once(
        self, request: dict[str, Any], work: Callable[[], None], watch: Watch, feed: bytes, most: int = OUTPUT_BYTES
    ) -> dict[str, Any]:
        child = spawn(self._settings, work)
        try:
            return self._attend(Command(child, self._channel, watch, feed, most), request)
        finally:
            child.close()

    def _python(self, request: dict[str, Any]) -> dict[str, Any]:
        keep = request["keep"]
        code = request["code"].encode("utf-8", "replace")
        watch = Watch(self._settings, request["timeout_s"])
        child = self._take_kept() if keep else None
        if child is None:
            argv = [self._settings.python, "-I", "-B", "-u", self._settings.program, *(("keep",) if keep else ())]
            child = spawn(self._settings, execute(argv, self._settings), program=True)
        command = Command(child, self._channel, watch, struct.pack(">I", len(code)) + code)
        result = self._attend(command, request)
        if keep and child.pid not in command.statuses:
            self._kept = child
        else:
            child.close()
        return result

    def _attend(self, command: Command, request: dict[str, Any]) -> dict[str, Any]:
        if self._kept is None:
            return command.attend(request["id"])
        result = command.attend(request["id"], (self._kept.pid,))
        self._signal_kept(signal.SIGSTOP)  # the command may have woken it
        return result

    def _take_kept(self) -> Child | None:
        """The program whose state is kept, awake; None if there is none, or a command has killed it."""
        if self._kept is not None and processes.await_stop(self._kept.pid, self._kept.pidfd):
            self._signal_kept(signal.SIGCONT)
            child, self._kept = self._kept, None
            return child
        if self._kept is not None:
            self._signal_kept(signal.SIGKILL)
            self._kept.close()
            self._kept = None
        return None

    def _signal_kept(self, number: int) -> None:
        assert self._kept is not None
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._kept.pidfd, number)
