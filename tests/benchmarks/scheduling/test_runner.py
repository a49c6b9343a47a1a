"""Runs of the benchmark: what is charged, and that all are charged alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.scheduling import runner
from benchmarks.scheduling.runner import options_of, run
from benchmarks.scheduling.specs import SPECS
from benchmarks.scheduling.worlds import World, build_world
from sortie.core.errors import ConfigError, UnknownName
from sortie.orchestrator.loop import REFILL_ROUNDS
from sortie.scheduling import GroupResult, Verdict
from sortie.scheduling.uniform import Uniform


@pytest.fixture(scope="module")
def world() -> World:
    return build_world(replace(SPECS["base"], pairs=300), 0)


@pytest.mark.parametrize("label", ["uniform", "oracle", "regression", "mopps", "vip", "envsched"])
def test_without_refills_everyone_spends_the_same(world: World, label: str) -> None:
    curve = run(world, label, steps=3)
    assert curve.rollouts == [0, 256, 512, 768]
    assert curve.cost == pytest.approx(curve.rollouts)
    assert len(curve.score) == len(curve.informative) == 4


def test_a_run_repeats(world: World) -> None:
    assert run(world, "mopps", steps=3).score == run(world, "mopps", steps=3).score


class Picky(Uniform):
    """Sends back every group of its first `rounds` batches of a step."""

    rounds = 2

    def observe(self, results: Sequence[GroupResult]) -> list[Verdict]:
        super().observe(results)
        self.batches = getattr(self, "batches", 0) + 1
        return ["refill" if self.batches % (self.rounds + 1) else "keep"] * len(results)


def test_refills_are_charged_and_not_trained_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "scheduler_of", lambda label, learner, seed: Picky(learner.world.records, seed=seed))
    learned: list[int] = []
    real = runner.Learner.learn
    monkeypatch.setattr(runner.Learner, "learn", lambda self, kept: (learned.append(len(kept)), real(self, kept))[1])
    curve = run(world, "picky", steps=3)
    assert curve.rollouts == [0, 768]
    assert curve.cost == pytest.approx([0.0, 768.0])
    assert learned == [32]


def test_refills_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pain F5: groups sent back for ever; a scheduler that keeps nothing is stopped as the training loop stops it."""
    monkeypatch.setattr(Picky, "rounds", 10**9)
    monkeypatch.setattr(runner, "scheduler_of", lambda label, learner, seed: Picky(learner.world.records, seed=seed))
    curve = run(world, "picky", steps=1)
    assert curve.rollouts == [0, 256 * REFILL_ROUNDS]
    assert curve.score[1] == curve.score[0]


def test_a_run_goes_on_until_rollouts_and_cost_are_both_spent() -> None:
    world = build_world(replace(SPECS["costs"], pairs=300), 0)
    curve = run(world, "oracle", steps=2)  # takes the cheap ones
    assert min(curve.rollouts[-1], curve.cost[-1]) >= 512 - 1e-6
    assert min(curve.rollouts[-2], curve.cost[-2]) < 512
    assert curve.cost[1] < 256


def test_drift_comes_at_its_share_of_the_rollouts(monkeypatch: pytest.MonkeyPatch) -> None:
    world = build_world(replace(SPECS["drift"], pairs=300), 0)
    drifted: list[int] = []
    monkeypatch.setattr(runner.Learner, "drift", lambda self: drifted.append(self.version))
    run(world, "uniform", steps=4)
    assert drifted == [1]


def test_the_oracle_is_ahead_from_the_start(world: World) -> None:
    uniform, oracle = run(world, "uniform", steps=10), run(world, "oracle", steps=10)
    assert oracle.score[-1] > uniform.score[-1] + 0.05
    assert np.mean(oracle.informative[1:]) > 2 * np.mean(uniform.informative[1:])


def test_options_are_read_from_labels() -> None:
    assert options_of("cap=0.5:signal=informative:prior.pair=2") == {
        "cap": 0.5,
        "signal": "informative",
        "prior": {"pair": 2},
    }
    with pytest.raises(ValueError, match="'cap' has no value; write cap=VALUE"):
        options_of("cap")


def test_what_does_not_exist_is_refused(world: World) -> None:
    with pytest.raises(UnknownName):
        run(world, "nonesuch", steps=1)
    with pytest.raises(ConfigError):
        run(world, "mopps:nonesuch=1", steps=1)
