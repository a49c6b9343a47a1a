"""Environments of rivals, without installing anything."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from benchmarks.rivals import venv as module
from benchmarks.rivals.venv import RivalError, requirements_of, venv

METADATA = """\
Metadata-Version: 2.1
Name: rival
Version: 1
Requires-Dist: torch==2.13.0+cpu
Requires-Dist: Torch_Vision; python_version > "3"
Requires-Dist: numpy<3,>=1
Requires-Dist: windows-only; platform_system == "Windows"
Requires-Dist: pandas; extra == "bench"
Requires-Dist: fastapi[standard]>=0.1; python_version > "3"
"""


@pytest.fixture
def pips(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would have run; venvs come out empty, and a download leaves a wheel."""
    seen: list[list[str]] = []

    def run(command: list[str]) -> None:
        seen.append(command)
        if command[1:3] == ["-m", "venv"]:
            Path(command[3]).mkdir(parents=True)
        if "download" in command:
            wheel = Path(command[command.index("--dest") + 1]) / "rival-1-py3-none-any.whl"
            wheel.parent.mkdir()
            with zipfile.ZipFile(wheel, "w") as archive:
                archive.writestr("rival-1.dist-info/METADATA", METADATA)

    monkeypatch.setattr(module, "_run", run)
    return seen


def test_an_environment_is_made_once_and_again_when_its_requirements_change(
    tmp_path: Path, pips: list[list[str]]
) -> None:
    python = venv("r", ["a==1"], folder=tmp_path)
    assert python == tmp_path / "r/bin/python"
    made = len(pips)
    assert venv("r", ["a==1"], folder=tmp_path) == python
    assert len(pips) == made
    venv("r", ["a==2"], folder=tmp_path)
    assert len(pips) == 2 * made


def test_torch_comes_first_and_stays_pinned_in_every_later_install(tmp_path: Path, pips: list[list[str]]) -> None:
    venv("r", ["a==1"], folder=tmp_path)
    installs = [command for command in pips if "install" in command]
    assert installs[0][-1] == module.TORCH
    assert installs[1][-2:] == [module.TORCH, "a==1"]


def test_a_bare_package_goes_in_without_what_pip_cannot_install(tmp_path: Path, pips: list[list[str]]) -> None:
    venv("r", ["a==1"], bare="rival==1", without=["torch-vision"], folder=tmp_path)
    needs, alone = [command for command in pips if "install" in command][1:]
    assert needs[-3:] == ["a==1", "numpy<3,>=1", "fastapi[standard]>=0.1"]
    assert "--no-deps" in alone
    assert alone[-1].endswith("rival-1-py3-none-any.whl")


def test_an_environment_whose_making_failed_is_made_anew(
    tmp_path: Path, pips: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(command: list[str]) -> None:
        raise RivalError("no network")

    with monkeypatch.context() as broken:
        broken.setattr(module, "_run", fail)
        with pytest.raises(RivalError):
            venv("r", ["a==1"], folder=tmp_path)
    venv("r", ["a==1"], folder=tmp_path)
    assert pips


def test_a_failing_pip_is_one_line_with_its_own_reason() -> None:
    script = "import sys; sys.stderr.write('WARNING: x\\nERROR: No matching distribution\\nnote: y\\n'); sys.exit(1)"
    with pytest.raises(RivalError, match=r"failed: No matching distribution$") as caught:
        module._run([module.sys.executable, "-c", script])
    assert "\n" not in str(caught.value)


def test_a_hanging_pip_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(command: list[str], **options: object) -> None:
        raise subprocess.TimeoutExpired(command, 1.0)

    monkeypatch.setattr(module.subprocess, "run", hang)
    with pytest.raises(RivalError, match="did not finish within"):
        module._run(["pip"])


def test_markers_and_extras_are_judged_for_this_machine(tmp_path: Path) -> None:
    wheel = tmp_path / "rival-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("rival-1.dist-info/METADATA", METADATA)
    assert requirements_of(wheel, without=["torch", "torchvision"]) == [
        "Torch_Vision",
        "numpy<3,>=1",
        "fastapi[standard]>=0.1",
    ]
