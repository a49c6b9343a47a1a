"""Names of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.core.errors import UsageError
from sortie.core.run_folder import RunFolder


def test_runs_without_a_name_are_numbered(tmp_path: Path) -> None:
    names = []
    for stem in ("run", "run", "shop"):
        with RunFolder.create(tmp_path, stem=stem) as run:
            names.append(run.name)
    assert names == ["run-1", "run-2", "shop-1"]


@pytest.mark.parametrize(
    ("stem", "name"), [("my shop: v2", "my-shop-v2-1"), ("../up", "up-1"), ("x" * 300, "x" * 60 + "-1"), ("", "run-1")]
)
def test_any_text_makes_a_stem(tmp_path: Path, stem: str, name: str) -> None:
    with RunFolder.create(tmp_path, stem=stem) as run:
        assert run.path == tmp_path / name


def test_a_name_that_is_taken_is_refused_with_the_remedy(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, "first").close()
    with pytest.raises(UsageError, match="first is there already: choose another --name"):
        RunFolder.create(tmp_path, "first")


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "a b"])
def test_a_name_that_no_folder_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a run"):
        RunFolder.create(tmp_path, name)


def test_a_runs_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write .*file.*--runs"):
        RunFolder.create(tmp_path / "file", "x")
