"""Seconds from `sortie train recipes/quickstart/run.toml` until its first drawn token, in fresh processes.

The model is in the model cache and its files in the page cache: a first start warms both and is not counted. The end
is the event `first_token` in the run's events.jsonl, which the loop writes within 20 ms of the draw; then the run is
killed. `folder_s` is when the run folder appeared: Python, imports, settings and checks lie before it; model, engine
and trainer behind it. Nothing is compared here: there is no rival that does the same.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import arguments, command, publish
from benchmarks.rivals import turns
from sortie import models
from sortie.core.errors import UsageError
from sortie.core.run_folder import RunFolder

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "recipes" / "quickstart" / "run.toml"
DEADLINE_S = 120.0
"""Longest wait for the event."""
TARGET_S = 6.0


def first_token(runs: Path, name: str) -> tuple[float, float]:
    """Start one run and kill it; seconds from the start of the process to its folder and to its first token.

    Raises: UsageError if it ended before, or took longer than DEADLINE_S.
    """
    sortie = [str(Path(sys.executable).parent / "sortie"), "train", str(RECIPE), "--runs", str(runs), "--name", name]
    with tempfile.TemporaryFile() as log:
        started = time.time()
        process = subprocess.Popen(sortie, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            while time.time() < started + DEADLINE_S:
                if "first_token" in (at := moments(runs / name)):
                    return at["created"] - started, at["first_token"] - started
                if process.poll() is not None:
                    log.seek(0)
                    said = log.read().decode(errors="replace").strip().splitlines() or ["it said nothing"]
                    raise UsageError(f"the run ended with code {process.returncode} before a token: {said[-1]}")
                time.sleep(0.05)
            raise UsageError(f"no token within {DEADLINE_S:g} s")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def moments(run: Path) -> dict[str, float]:
    """When each kind of event first happened, in seconds since the epoch."""
    if not (run / "events.jsonl").is_file():
        return {}
    at: dict[str, float] = {}
    for event in RunFolder(run).events():
        at.setdefault(event["kind"], event["at"])
    return at


def main() -> None:
    """Three starts, after one that is not counted; --quick changes nothing."""
    options = arguments(__doc__ or "")
    models.resolve("smollm2-135m")
    rows = []
    with tempfile.TemporaryDirectory() as runs:
        for repeat in range(4):
            with turns.quiet_machine():
                folder_s, token_s = first_token(Path(runs), f"start-{repeat}")
            if repeat:
                rows.append({"start": repeat, "folder_s": folder_s, "first_token_s": token_s})
    spread = turns.spread([row["first_token_s"] for row in rows])
    publish("start", rows, [turns.target("first token, s", spread, TARGET_S, at_most=True)], as_json=options.json)


if __name__ == "__main__":
    command(main)
