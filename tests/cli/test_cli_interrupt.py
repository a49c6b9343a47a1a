"""Ctrl-C and kill during a run."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sortie.core.run_folder import RunFolder


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill"])
def test_a_run_that_is_stopped_keeps_what_it_finished(number: int, at_work: Path, tmp_path: Path) -> None:
    command = ["train", "run.toml", "--set", "steps=100000", "--runs", str(tmp_path), "--name", "long"]
    script = f"import sys; from sortie.cli.main import main; sys.exit(main({command!r}))"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("step ") and " 2/" in line:
                process.send_signal(number)
                break
        _, err = process.communicate()
    if number == signal.SIGINT:
        assert process.returncode == 130, err
        assert err.split() == ["stopped"]
    run = RunFolder.open("long", tmp_path)
    info = run.info()
    assert (info.status, info.before, info.after) == ("interrupted", None, None)
    assert info.steps >= 2
    trained = [record for record in run.trajectories() if record.phase == "train"]
    assert len(trained) >= 8
    assert all(record.trajectory.rows() for record in trained)
