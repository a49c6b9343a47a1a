"""Virtual environments for rivals: made under `.bench/NAME` on first use, and again when what they hold changes.

Sortie's own environment never sees a rival's packages. Several processes may ask for the same one; the first makes it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from email.parser import Parser
from pathlib import Path

from filelock import FileLock, Timeout
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sortie.core.errors import UsageError

FOLDER = Path(__file__).resolve().parents[2] / ".bench"
"""Where rivals live; ignored by git."""
TORCH = "torch==2.13.0"
"""Installed first and by exact version, as `make install` does: an open range would take a CUDA build of several GB."""
TRANSFORMERS = ("transformers==5.24.0", "accelerate==1.16.0", "peft==0.21.2")
"""What transformers with PEFT needs: the environment `transformers`."""
INSTALL_S = 1800.0
"""Longest one pip command may take, and longest wait for another process that is making the environment."""


class RivalError(UsageError):
    """A rival cannot be run here."""


def venv(
    name: str,
    requirements: Sequence[str],
    *,
    bare: str | None = None,
    without: Sequence[str] = (),
    folder: Path = FOLDER,
) -> Path:
    """The Python of the environment `name`, which holds torch, `requirements` and what these need.

    `bare` is a package that pip cannot install whole: its own requirements go in but for those named in `without`, then
    the package alone. Raises: RivalError, in one line, if pip fails or another process does not finish making it.
    """
    home = folder / name
    python = home / "bin" / "python"
    stamp = home / "requirements.json"
    wanted = json.dumps({"torch": TORCH, "requirements": [*requirements], "bare": bare, "without": [*without]})
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / f"{name}.lock", timeout=INSTALL_S):
            if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
                _make(home, python, requirements, bare, without)
                stamp.write_text(wanted, encoding="utf-8")
    except Timeout:
        raise RivalError(
            f"another process has been making {home} for {INSTALL_S:g} s: stop it, then try again"
        ) from None
    return python


def _make(home: Path, python: Path, requirements: Sequence[str], bare: str | None, without: Sequence[str]) -> None:
    print(f"making the virtual environment of {home.name} in {home} (minutes, once)", file=sys.stderr, flush=True)
    shutil.rmtree(home, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(home)])
    pip = [str(python), "-m", "pip"]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    _run([*pip, "install", *quiet, TORCH])
    needs = list(requirements)
    if bare is not None:
        wheels = home / "wheels"
        _run([*pip, "download", *quiet, "--no-deps", "--only-binary=:all:", "--dest", str(wheels), bare])
        (wheel,) = wheels.glob("*.whl")
        needs += requirements_of(wheel, without=("torch", *without))
    if needs:
        _run([*pip, "install", *quiet, TORCH, *needs])
    if bare is not None:
        _run([*pip, "install", *quiet, "--no-deps", str(wheel)])
        shutil.rmtree(wheels)


def requirements_of(wheel: Path, *, without: Sequence[str]) -> list[str]:
    """What a wheel asks for on this machine, extras and the packages named in `without` left out."""
    with zipfile.ZipFile(wheel) as archive:
        (member,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        declared = Parser().parsestr(archive.read(member).decode()).get_all("Requires-Dist") or []
    parsed = [Requirement(line) for line in declared]
    dropped = {canonicalize_name(name) for name in without}
    kept = [r for r in parsed if canonicalize_name(r.name) not in dropped]
    return [str(r).split(";")[0].strip() for r in kept if r.marker is None or r.marker.evaluate({"extra": ""})]


def _run(command: Sequence[str]) -> None:
    shown = " ".join(Path(command[0]).name if i == 0 else part for i, part in enumerate(command))[:120]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired:
        raise RivalError(f"`{shown}` did not finish within {INSTALL_S:g} s") from None
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
        raise RivalError(f"`{shown}` failed: {(errors or lines or ['it gave no reason'])[-1].strip()}")
