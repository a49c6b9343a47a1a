"""Failures of environments leave a trace. Pain K4."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from test_rollout_engine import TASK, Env, engine

from sortie.agents.reward import reward
from sortie.core.errors import RewardError
from sortie.core.trajectory import Trajectory
from sortie.rollouts.envlog import EnvLogs


@reward
def broken(answer: str) -> float:
    raise KeyError(f"no entry for {answer}")


async def test_the_first_failure_shows_its_traceback_and_every_one_is_in_the_environments_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Pain K4: on the console once, in the file each time, there as soon as the rollout has ended."""
    running = engine(["one", "two"], log_folder=tmp_path / "logs")
    with caplog.at_level(logging.WARNING, "sortie"):
        await running.run_one(Env(rewards=[broken]), TASK, member=0)
        await running.run_one(Env(rewards=[broken]), TASK, member=1)
    (shown,) = caplog.records
    assert "no entry for one" in shown.getMessage()
    assert "in broken" in caplog.text
    text = (tmp_path / "logs" / "toy.log").read_text()
    entries = [line for line in text.splitlines() if not line.startswith(" ")]
    assert ["@0.0 attempt 1 reward: " in entries[0], "@0.1 attempt 1 reward: " in entries[1]] == [True, True]
    assert text.count("in broken") == 1, "the line of the environment's own code that failed, once"
    assert "no entry for two" in entries[1]


async def test_a_run_without_failures_leaves_no_file(tmp_path: Path) -> None:
    await engine(["right"], log_folder=tmp_path / "logs").run_one(Env(), TASK)
    assert not (tmp_path / "logs").exists()


def test_each_environment_has_a_file_of_its_own_whatever_its_name(tmp_path: Path) -> None:
    logs = EnvLogs(tmp_path)
    for env in ("shop", "my env:2"):
        assert logs.failed(Trajectory(id="r", task_key="k", env=env), RewardError("it\nbroke"))
    assert {path.name for path in tmp_path.iterdir()} == {"shop.log", "my_env_2.log"}
    assert "reward: it broke" in (tmp_path / "shop.log").read_text()


def test_without_a_folder_the_first_of_a_kind_is_still_told_apart() -> None:
    logs = EnvLogs(None)
    rollout = Trajectory(id="r", task_key="k", env="shop")
    assert [logs.failed(rollout, RewardError("a")), logs.failed(rollout, RewardError("b"))] == [True, False]
    assert logs.failed(rollout, ValueError("c"))
