"""The folder of one run."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
from rollout_examples import make_rollout

from sortie.core.errors import UnknownName
from sortie.core.run_folder import RunFolder, list_runs

SCORE = {"mean": 0.25, "low": 0.2, "high": 0.3, "n": 100}


def test_a_wrong_name_lists_the_runs_there_are(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, "first").close()
    with pytest.raises(UnknownName, match=r"unknown run in .*'firts': did you mean 'first'\? known: first"):
        RunFolder.open("firts", tmp_path)


def test_a_run_opens_by_name_and_by_path(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, "first").close()
    assert RunFolder.open("first", tmp_path).path == RunFolder.open(tmp_path / "first").path


def test_everything_can_be_read_while_the_run_goes_on(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, "live") as run:
        trajectory, task = make_rollout()
        run.write_config('model = "tiny"\n')
        run.append_metrics({"step": 1, "reward": 0.5, "loss": math.inf})
        run.append_event("skipped", step=1)
        run.add_rollout(trajectory, task, step=1)
        seen = RunFolder.open("live", tmp_path)
        assert seen.metrics()[0]["reward"] == 0.5
        assert seen.metrics()[0]["loss"] is None
        assert [event["kind"] for event in seen.events()] == ["created", "skipped"]
        assert next(seen.trajectories()).trajectory == trajectory
        assert seen.summary() is None
        run.seal_step(1)
        assert next(seen.trajectories(1)).task == task


def test_leaving_a_run_in_order_seals_what_evaluations_added(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, "one") as run:
        for step, phase in ((0, "before"), (1, "train")):
            run.add_rollout(*make_rollout(), step=step, phase=phase)
            run.seal_step(1)
        run.add_rollout(*make_rollout(), step=1, phase="after")
    names = sorted(path.name for path in (tmp_path / "one" / "rollouts").iterdir())
    assert names == ["index.jsonl", "tokens-000000.parquet", "tokens-000001.parquet"]
    assert [record.phase for record in run.trajectories()] == ["before", "train", "after"]


def test_an_error_on_the_way_leaves_what_was_journalled_as_it_is(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "one")
    run.add_rollout(*make_rollout(), step=1)
    with pytest.raises(KeyError), run:
        raise KeyError
    assert (run.path / "rollouts" / "tokens-000001.jsonl").is_file()
    assert len(list(RunFolder.open("one", tmp_path).trajectories())) == 1


def test_a_step_done_again_after_a_kill_counts_once(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, "again") as run:
        for reward in (0.1, 0.2):
            run.append_metrics({"step": 1, "reward": reward})
        assert [line["reward"] for line in run.metrics()] == [0.2]


def test_a_run_is_running_while_held_then_interrupted_or_finished(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "one")
    run.write_config('model = "tiny"\n')
    assert RunFolder.open("one", tmp_path).info().status == "running"
    run.close()
    assert RunFolder.open("one", tmp_path).info().status == "interrupted"
    run.write_summary({"before": {"pooled": SCORE}, "after": {"pooled": SCORE | {"mean": 0.5}}})
    info = run.info()
    assert (info.status, info.model, info.before, info.after) == ("finished", "tiny", 0.25, 0.5)


def test_a_killed_process_leaves_an_interrupted_run_with_its_records(tmp_path: Path) -> None:
    script = f"""
import os, signal
from pathlib import Path
from sortie.core.run_folder import RunFolder
run = RunFolder.create(Path({str(tmp_path)!r}), "killed")
run.append_metrics({{"step": 1}})
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    (info,) = list_runs(tmp_path)
    assert (info.status, info.steps) == ("interrupted", 1)


def test_runs_are_listed_oldest_first_and_other_folders_are_not(tmp_path: Path) -> None:
    for name in ("b", "a"):
        RunFolder.create(tmp_path, name).close()
    (tmp_path / "notes").mkdir()
    assert [info.name for info in list_runs(tmp_path)] == ["b", "a"]
    assert list_runs(tmp_path / "nowhere") == []
