"""A parent that is killed leaves no process, no mount and no folder."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sandboxes import host_processes, opened

from sortie.core.errors import ResourceError
from sortie.resources.kinds.sandbox.scratch import LOCK, Scratch

PARENT = """
import asyncio, sys
sys.path.insert(0, {folder!r})
from sandboxes import opened

async def main():
    async with opened({kind!r}) as sandbox:
        await sandbox.write("file", "text")
        hanging = asyncio.create_task(sandbox.run(
            ["sh", "-c", "trap '' TERM HUP; (trap '' TERM HUP; setsid sleep 600) & echo on > started; sleep 600"]
        ))
        await asyncio.sleep(0.3)
        print(sandbox.pid, flush=True)
        await hanging

asyncio.run(main())
"""


def mounts() -> set[str]:
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def ended(pidfds: list[int], within_s: float = 20.0) -> bool:
    waiting = set(pidfds)
    while waiting:
        ready = select.select(list(waiting), [], [], within_s)[0]
        if not ready:
            return False
        waiting -= set(ready)
    return True


def kill_a_parent(kind: str, temporary: Path) -> None:
    script = PARENT.format(folder=str(Path(__file__).parent), kind=kind)
    environment = {**os.environ, "TMPDIR": str(temporary)}
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    with parent.stdout:
        sandbox = int(parent.stdout.readline())
        family = {sandbox, *host_processes(sandbox)}
        while len(family) < 3:  # the shell and its children are there once they have been scheduled
            family |= host_processes(sandbox)
        pidfds = [os.pidfd_open(pid) for pid in family]
        try:
            parent.send_signal(signal.SIGKILL)
            assert parent.wait() == -signal.SIGKILL
            assert ended(pidfds)
        finally:
            for pidfd in pidfds:
                os.close(pidfd)


def test_a_killed_parent_leaves_no_process_no_mount_and_no_folder(kind: str, tmp_path: Path) -> None:
    """Pain D13."""
    before = mounts()
    kill_a_parent(kind, tmp_path)
    assert mounts() == before
    assert list(tmp_path.iterdir()) == []


def test_a_killed_parent_leaves_nothing_either_where_nothing_is_isolated(tmp_path: Path) -> None:
    """Pain D13."""
    kill_a_parent("none", tmp_path)
    assert [path.name for path in tmp_path.glob("*/*")] == [LOCK]


def test_folders_that_nobody_holds_go_when_the_next_is_made_and_held_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pain D14: what a kill of both processes left behind."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    held = Scratch.make()
    stale = held.path.with_name("sandbox-stale")
    (stale / "files").mkdir(parents=True)
    new = Scratch.make()
    assert not stale.exists()
    assert held.path.exists()
    descriptor = os.open(held.path / LOCK, os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    for scratch in (held, new):
        scratch.remove()
        assert not scratch.path.exists()


def test_each_user_has_a_folder_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pain D14: a second user on the host starts as the first one did."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mine = Scratch.make()
    monkeypatch.setattr(os, "getuid", lambda: 4321)
    with pytest.raises(ResourceError, match="sortie-4321 belongs to another user; set TMPDIR"):
        Scratch.make()  # made by the true uid: as if somebody had put it there first
    assert mine.path.parent.name != "sortie-4321"
    mine.remove()


async def test_a_sandbox_that_is_isolated_puts_nothing_on_the_host(
    some_kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pain D14."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = mounts()
    async with opened(some_kind) as sandbox:
        await sandbox.write("file", "text")
        assert os.listdir(tmp_path) == []
        assert mounts() == before
