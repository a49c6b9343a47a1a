"""Files that survive a kill and a full disk."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sortie.core.errors import UsageError
from sortie.core.files import Lines, read_lines, to_json, write_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def refuse_constants(text: str) -> object:
    raise AssertionError(f"{text} is not JSON")


@given(VALUES)
def test_whatever_is_recorded_is_valid_json(value: object) -> None:
    json.loads(to_json(value), parse_constant=refuse_constants)


def test_numbers_of_numpy_are_numbers_and_nan_is_null() -> None:
    assert to_json({"a": np.float32(0.5), "b": np.arange(2), "c": float("nan")}) == '{"a": 0.5, "b": [0, 1], "c": null}'


def test_a_line_torn_by_a_kill_is_skipped_and_swallows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2, "rew')
    assert [line["step"] for line in read_lines(path)] == [1]
    lines = Lines(path)
    lines.append({"step": 2})
    lines.close()
    assert [line["step"] for line in read_lines(path)] == [1, 2]


def test_a_line_can_be_read_as_soon_as_it_is_written(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "events.jsonl")
    lines.append({"text": "lone surrogate \udc80"})
    assert list(read_lines(lines.path)) == [{"text": "lone surrogate \udc80"}]
    lines.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_one_line_naming_the_path_and_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.symlink_to("/dev/full")
    lines = Lines(path)
    with pytest.raises(UsageError, match=r"cannot write .*metrics\.jsonl: the disk is full; free some space") as caught:
        lines.append({"step": 1})
    lines.close()
    assert "\n" not in str(caught.value)


def test_after_a_write_that_failed_half_way_the_next_record_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = Lines(tmp_path / "metrics.jsonl")
    lines.append({"step": 1})
    with lines.path.open("ab") as other:
        monkeypatch.setattr(lines, "_file", HalfFull(other.fileno()))
        with pytest.raises(UsageError, match="disk is full"):
            lines.append({"step": 2})
    monkeypatch.undo()
    lines.append({"step": 3})
    lines.close()
    assert [line["step"] for line in read_lines(lines.path)] == [1, 3]


class HalfFull:
    """A file that takes four bytes and is full then."""

    def __init__(self, target: int) -> None:
        self.target, self.room = target, 4

    def write(self, data: memoryview) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        self.room = 0
        return os.write(self.target, data[:4])


def test_a_replacement_that_fails_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "summary.json"
    write_text(path, "old")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UsageError, match="disk is full"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="Not a directory; choose another folder with --runs"):
        write_text(tmp_path / "file" / "x", "text")
