from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from small_run import config, env

from sortie.core.errors import ConfigError, UsageError
from sortie.core.run_folder import RunFolder
from sortie.orchestrator.loop import resume_run, train_run

HERE = Path(__file__).parent
LEARNED = ("reward", "informative", "loss", "grad_norm", "update_norm", "trainable_tokens", "train/ratio", "policy")


def quiet(_: str) -> None: ...


async def straight(model: Path, runs: Path, steps: int = 4) -> RunFolder:
    await train_run(config(model, steps=steps), envs=[env()], runs=runs, name="straight", say=quiet)
    return RunFolder.open("straight", runs)


def check_same_learning(one: RunFolder, other: RunFolder) -> None:
    """What was learned at each step is equal within 1e-4 relative."""
    assert len(one.metrics()) == len(other.metrics())
    for a, b in zip(one.metrics(), other.metrics(), strict=True):
        for key in LEARNED:
            assert a.get(key) == pytest.approx(b.get(key), rel=1e-4, abs=1e-7), (a["step"], key)


def trained_tasks(folder: RunFolder) -> Counter[tuple[int, str]]:
    return Counter((r.step, r.trajectory.id) for r in folder.trajectories() if r.phase == "train")


@pytest.mark.parametrize("line", ["before:", "step 1/", "step 3/", "after:"])
async def test_a_run_interrupted_anywhere_goes_on_as_if_nothing_had_happened(
    model: Path, tmp_path: Path, line: str
) -> None:
    """Pain J1, J3, J5, J10, J11: metrics, trained tasks and scores equal the uninterrupted run's."""

    def stop(said: str) -> None:
        if said.startswith(line):
            raise asyncio.CancelledError

    whole = await straight(model, tmp_path)
    with pytest.raises(asyncio.CancelledError):
        await train_run(config(model, steps=4), envs=[env()], runs=tmp_path, name="cut", say=stop)
    summary = await resume_run("cut", envs=[env()], runs=tmp_path, say=quiet)
    cut = RunFolder.open("cut", tmp_path)
    check_same_learning(whole, cut)
    assert trained_tasks(cut) == trained_tasks(whole)
    expected = whole.summary()
    assert expected is not None
    assert summary.to_dict()["before"] == expected["before"]
    assert summary.to_dict()["after"] == expected["after"]


async def test_rollouts_that_had_ended_are_not_drawn_again(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal is used where the policy's digest matches."""
    from sortie.rollouts.engine import RolloutEngine

    def stop(said: str) -> None:
        if said.startswith("step 2/"):
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await train_run(config(model, steps=3), envs=[env()], runs=tmp_path, name="cut", say=stop)
    folder = RunFolder.open("cut", tmp_path)
    shutil.rmtree(folder.checkpoint_dir / "step-2")  # as if killed before step 2 was committed
    drawn: list[int] = []
    attempt = RolloutEngine._attempt

    async def counted(*args: object) -> object:
        drawn.append(1)
        return await attempt(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(RolloutEngine, "_attempt", counted)
    await resume_run("cut", envs=[env()], runs=tmp_path, say=quiet)
    assert len(drawn) == 12 + 4  # step 3 and the evaluation after; step 2 came from the journal


async def test_a_finished_run_goes_on_only_with_an_explicit_change(model: Path, tmp_path: Path) -> None:
    """Pain J13, J3: nothing to do is said, not exit 0; more steps are recorded."""
    await straight(model, tmp_path, steps=2)
    with pytest.raises(UsageError, match=r"has finished its 2 steps; go on with --set steps=4"):
        await resume_run("straight", envs=[env()], runs=tmp_path, say=quiet)
    summary = await resume_run("straight", envs=[env()], runs=tmp_path, changes=["steps=3"], say=quiet)
    folder = RunFolder.open("straight", tmp_path)
    assert [line["step"] for line in folder.metrics()] == [1, 2, 3]
    assert summary.steps == 3
    (resumed,) = [event for event in folder.events() if event["kind"] == "resumed"]
    assert resumed["changed"] == {"steps": {"from": 2, "to": 3}}


async def test_what_was_learned_cannot_change_its_meaning(model: Path, tmp_path: Path) -> None:
    await straight(model, tmp_path, steps=1)
    with pytest.raises(ConfigError, match="lora cannot change while a run goes on"):
        await resume_run("straight", envs=[env()], runs=tmp_path, changes=["lora.rank=8", "steps=2"], say=quiet)


async def test_a_run_in_progress_cannot_be_taken_over(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, "busy"), pytest.raises(UsageError, match="being trained by another process"):
        RunFolder.resume("busy", tmp_path)


def start(model: Path, runs: Path, steps: int) -> subprocess.Popen[bytes]:
    """Train in a process of its own, or go on with what is there; returns once the run is under way."""
    command = [sys.executable, str(HERE / "killable.py"), str(model), str(runs), str(steps)]
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parent}", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()  # past the imports, so that a kill meets the run
    return process


def finish(process: subprocess.Popen[bytes]) -> float:
    """Seconds until it ended well."""
    started = time.monotonic()
    process.communicate()
    assert process.returncode == 0
    return time.monotonic() - started


def kill(process: subprocess.Popen[bytes], after: float) -> bool:
    """Kill it after so many seconds; whether it was still alive."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after)
    alive = process.returncode is None
    if alive:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return alive


def check_kills(model: Path, tmp_path: Path, steps: int, kills: int) -> None:
    """Killed at random moments, each time going on from what is left; a run that got through makes way for another."""
    seconds = finish(start(model, tmp_path / "whole", steps))
    whole = RunFolder.open("r", tmp_path / "whole")
    rng = random.Random(1)
    killed, runs = 0, [tmp_path / "cut-0"]
    while killed < kills:
        killed += kill(start(model, runs[-1], steps), after=rng.uniform(0.0, 1.5 * seconds / kills))
        if (runs[-1] / "r" / "summary.json").exists():
            runs.append(tmp_path / f"cut-{len(runs)}")
    finish(start(model, runs[-1], steps))
    for folder in runs:
        check_same_run(whole, RunFolder.open("r", folder))


def check_same_run(whole: RunFolder, cut: RunFolder) -> None:
    check_same_learning(whole, cut)
    expected, got = whole.summary(), cut.summary()
    assert expected is not None
    assert got is not None
    assert got["after"] == expected["after"]
    assert trained_tasks(cut) == trained_tasks(whole)
    assert [p.name for p in cut.checkpoint_dir.iterdir() if p.name.startswith(".")] == []


@pytest.mark.timeout(300)
def test_kill_9_at_random_moments_changes_nothing(model: Path, tmp_path: Path) -> None:
    """Pain J1, J6."""
    check_kills(model, tmp_path, steps=4, kills=3)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_kill_9_at_twenty_random_moments_of_twelve_steps_changes_nothing(model: Path, tmp_path: Path) -> None:
    """Pain J1, J6."""
    check_kills(model, tmp_path, steps=12, kills=20)
