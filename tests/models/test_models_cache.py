"""A cached folder is whole or not there, whatever happens while it is made."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import filelock
import pytest

from sortie.core.errors import UsageError
from sortie.models import cache

CHILD = """
import sys
from pathlib import Path
from sortie.models.cache import make_once

def make(folder):
    (folder / "weights").write_text("half")
    with open(sys.argv[2], "a") as log:
        log.write("made\\n")
    print("making", flush=True)
    sys.stdin.read()
    (folder / "weights").write_text("whole")

print("started", flush=True)
make_once(Path(sys.argv[1]), make)
"""


def child(folder: Path, log: Path) -> subprocess.Popen[str]:
    """A process that makes `folder`, stopping half-way until its stdin is closed."""
    command = [sys.executable, "-c", CHILD, str(folder), str(log)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def write_whole(folder: Path) -> None:
    (folder / "weights").write_text("whole")


def never(folder: Path) -> None:
    raise AssertionError("must not be made")


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".model.lock"}


def test_it_is_made_once_and_then_found(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "model"
    assert cache.make_once(folder, write_whole) == folder
    assert cache.make_once(folder, never) == folder
    assert {path.name for path in folder.iterdir()} == {"weights", cache.MANIFEST}


def test_two_processes_at_once_make_it_once(tmp_path: Path) -> None:
    folder, log = tmp_path / "model", tmp_path / "log"
    with child(folder, log) as first:
        assert [read_line(first), read_line(first)] == ["started", "making"]
        with child(folder, log) as second:
            assert read_line(second) == "started"
            first.communicate()
            second.communicate()
    assert (first.returncode, second.returncode) == (0, 0)
    assert log.read_text() == "made\n"
    assert (folder / "weights").read_text() == "whole"


def test_while_one_process_makes_it_no_other_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is asked for without waiting, so that its being held shows at once."""
    folder = tmp_path / "model"
    monkeypatch.setattr(filelock, "FileLock", partial(filelock.FileLock, timeout=0))
    with child(folder, tmp_path / "log") as first:
        assert [read_line(first), read_line(first)] == ["started", "making"]
        with pytest.raises(UsageError, match="could not be acquired"):
            cache.make_once(folder, never)
        first.communicate()
    assert cache.make_once(folder, never) == folder


def test_an_interruption_before_the_rename_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(source: Path, target: Path) -> None:
        assert cache.is_whole(source)
        assert not target.exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cache.make_once(tmp_path / "models" / "model", write_whole)
    assert left_in(tmp_path / "models") == set()


def test_a_killed_process_leaves_nothing_usable_and_nothing_in_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "model"
    with child(folder, tmp_path / "log") as process:
        assert [read_line(process), read_line(process)] == ["started", "making"]
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not folder.exists()
    assert not cache.is_whole(folder)
    cache.make_once(folder, write_whole)
    assert (folder / "weights").read_text() == "whole"
    assert left_in(folder.parent) == {"model"}


def test_a_failing_maker_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        write_whole(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.make_once(tmp_path / "models" / "model", fail)
    assert left_in(tmp_path / "models") == set()


def test_a_disk_that_fills_up_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        write_whole(folder)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(UsageError, match=r"disk under .* is full \(5 MB needed\): free some space") as caught:
        cache.make_once(tmp_path / "models" / "model", fill, needs_bytes=5_000_000)
    assert "\n" not in str(caught.value)
    assert left_in(tmp_path / "models") == set()


def test_a_disk_too_small_is_noticed_before_anything_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is full"):
        cache.make_once(tmp_path / "model", never, needs_bytes=1 << 60)


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where a folder should be")
    with pytest.raises(UsageError, match="set SORTIE_CACHE to another folder"):
        cache.make_once(tmp_path / "models" / "model", never)


def test_a_file_cut_short_is_made_again(tmp_path: Path) -> None:
    folder = cache.make_once(tmp_path / "model", write_whole)
    (folder / "weights").write_text("who")
    cache.make_once(folder, write_whole)
    assert (folder / "weights").read_text() == "whole"


def test_a_changed_file_of_the_same_size_is_found_by_its_checksum(tmp_path: Path) -> None:
    folder = cache.make_once(tmp_path / "model", write_whole)
    (folder / "weights").write_text("wrong")
    assert cache.is_whole(folder)
    assert not cache.is_whole(folder, hashes=True)
    cache.make_once(folder, write_whole, hashes=True)
    assert (folder / "weights").read_text() == "whole"


@pytest.mark.parametrize(
    "manifest", ["", "{", "[]", "{}", '{"files": {"weights": 3}}', '{"files": {"gone": {"bytes": 1}}}']
)
def test_a_folder_without_a_sound_manifest_is_not_whole(tmp_path: Path, manifest: str) -> None:
    write_whole(tmp_path)
    (tmp_path / cache.MANIFEST).write_text(manifest)
    assert not cache.is_whole(tmp_path)


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("SORTIE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache.model_folder("m") == Path("/elsewhere/sortie/models/m")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.cache_root() == Path.home() / ".cache" / "sortie"
    monkeypatch.setenv("SORTIE_CACHE", "/mine")
    assert cache.cache_root() == Path("/mine")
