"""The command line run in this process, and a run that it trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import RUN_FILE, WORLD, Command, run_command

from tiny_folder import make_tiny_folder


@pytest.fixture
def sortie(capsys: pytest.CaptureFixture[str]) -> Command:
    """`sortie("runs", "list")` -> exit code, stdout, stderr."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        code = run_command(*arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model, an environment of one's own, a run file, and the run `first` under runs/."""
    folder = tmp_path_factory.mktemp("workplace")
    make_tiny_folder(folder / "tiny")
    (folder / "cli_world.py").write_text(WORLD)
    (folder / "run.toml").write_text(RUN_FILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run_command("train", "run.toml", "--name", "first") == 0
    assert json.loads((folder / "runs" / "first" / "summary.json").read_text())["steps"] == 2
    return folder


@pytest.fixture
def at_work(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`workplace`, as the working directory."""
    monkeypatch.chdir(workplace)
    return workplace
