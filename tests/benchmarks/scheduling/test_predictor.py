"""Figures of predictors, by hand and on predictors whose quality is known."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.scheduling import predictor
from benchmarks.scheduling.baselines import BASELINES
from benchmarks.scheduling.predictor import calibration, judge, rank, watch
from benchmarks.scheduling.specs import SPECS
from benchmarks.scheduling.worlds import build_world
from sortie.scheduling import GroupResult, TaskRecord


def test_rank_correlation_by_hand() -> None:
    assert rank(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 90.0])) == pytest.approx(1.0)
    assert rank(np.array([3.0, 2.0, 1.0]), np.array([10.0, 20.0, 90.0])) == pytest.approx(-1.0)
    # Ranks 1.5 1.5 3 against 1 2 3: covariance 1.5 / sqrt(1.5 x 2).
    assert rank(np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx(1.5 / np.sqrt(3.0))
    assert rank(np.zeros(3), np.array([1.0, 2.0, 3.0])) == 0.0, "who ties everything ranks nothing"


def test_calibration_error_by_hand() -> None:
    mean = np.array([0.2] * 10 + [0.8] * 10)
    assert calibration(mean, np.array([0.2] * 10 + [0.8] * 10)) == pytest.approx(0.0)
    assert calibration(mean, np.array([0.3] * 10 + [0.7] * 10)) == pytest.approx(0.1)
    assert calibration(np.full(20, 0.5), np.array([0.0, 1.0] * 10)) == pytest.approx(0.0)


def test_judgement_of_the_truth_is_perfect() -> None:
    p = np.linspace(0.1, 0.9, 9)
    v = p * (1 - p)
    rows = np.stack([np.zeros(9), np.zeros(9), p, np.zeros(9), v, p, v, p], axis=1)
    found = judge(rows)
    assert (found["rank"], found["calibration"], found["variance_error"], found["inside"]) == pytest.approx(
        (1, 0, 0, 1)
    )
    assert found["log_loss"] == pytest.approx(float(-(p * np.log(p) + (1 - p) * np.log(1 - p)).mean()))


def test_groups_are_predicted_before_they_are_seen_and_first_visits_told_apart() -> None:
    world = build_world(replace(SPECS["base"], pairs=64), 0)
    seen = watch(world, ["constant", "environment", "task beta", "oracle"], "uniform", 4)
    rows = seen["constant"]
    assert rows.shape == (4 * 32, 8)
    assert (rows[:64, 1] == 0).all()
    assert (rows[64:, 1] == 1).all()
    assert (seen["task beta"][:32, 2] == 0.5).all(), "nothing was seen before the first update"
    assert judge(seen["oracle"])["rank"] == pytest.approx(1.0)
    assert judge(seen["environment"][64:])["rank"] > judge(rows[64:])["rank"]


def test_a_task_is_judged_by_itself_and_new_ones_by_all() -> None:
    records = [TaskRecord(key=f"e/{i}", environment="e") for i in range(3)]
    beta = BASELINES["task beta"](records)
    beta.observe([GroupResult(key="e/0", assignment=-1, rewards=(1.0,) * 8)])
    beta.observe([GroupResult(key="e/1", assignment=-1, rewards=(0.0,) * 8)])
    mean = beta.predict(["e/0", "e/1", "e/2"]).mean
    assert mean[0] > 0.85
    assert mean[1] < 0.15
    assert mean[2] == pytest.approx(0.5, abs=0.01)


def test_graded_rewards_are_expected_to_vary_less() -> None:
    records = [TaskRecord(key=f"e/{i}", environment="e") for i in range(200)]
    rng = np.random.default_rng(0)
    beta = BASELINES["constant"](records)
    for record in records:
        rewards = tuple((rng.binomial(4, 0.5, size=8) / 4).tolist())
        beta.observe([GroupResult(key=record.key, assignment=-1, rewards=rewards)])
    assert beta.predict(["e/0"]).variance[0] == pytest.approx(0.25 / 4, rel=0.15)


def test_the_command_prints_both_kinds_of_visit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = replace(SPECS["base"], pairs=64, steps=4)
    monkeypatch.setattr(predictor, "SPECS", {"base": small})
    monkeypatch.setattr(predictor, "make", lambda name, seed: build_world(small, seed))
    predictor.main(["--seeds", "2", "--json"])
    shown = json.loads(capsys.readouterr().out)
    rows = shown["rows"]
    assert [(row["predictor"], row["groups"]) for row in rows][:2] == [
        ("constant", "first visits"),
        ("constant", "revisits"),
    ]
    assert len(rows) == 2 * len(predictor.PREDICTORS)
    assert all(row["log_loss_low"] <= row["log_loss"] <= row["log_loss_high"] for row in rows)
    names = [row["name"] for row in shown["targets"]]
    assert "base, first visits: rank ahead of vip" in names
    assert len(names) == 2 * 2 * len(predictor.RIVALS)


def test_being_ahead_means_outside_the_interval() -> None:
    own = [{"rank": r, "log_loss": 0.3} for r in (0.5, 0.6, 0.7)]
    behind = [{"rank": r - 0.1, "log_loss": 0.4} for r in (0.5, 0.6, 0.7)]
    level = [{"rank": 1.2 - r, "log_loss": 0.3} for r in (0.5, 0.6, 0.7)]
    kind = "first visits"
    found = predictor.targets_of("base", {("envsched", kind): own, ("vip", kind): behind, ("constant", kind): level})
    assert [row["met"] for row in found] == [True, True, False, False]
