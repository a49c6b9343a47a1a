"""Learners that count the rollouts of a group otherwise, against hand-worked growth."""

from __future__ import annotations

import json

import pytest

from benchmarks.scheduling.allocation import LEARNERS, main
from benchmarks.scheduling.runner import GROUPS
from benchmarks.scheduling.worlds import GROUP_SIZE, World, make
from sortie.scheduling import GroupResult


def result(world: World, row: int, *rewards: float) -> GroupResult:
    return GroupResult(key=world.records[row].key, assignment=0, rewards=rewards)


@pytest.mark.parametrize(
    ("kind", "counted"),
    [
        ("summed", (2.0, 0.75)),  # sum (r - mean)^2: 8 x 1/4, and 3 x 1/16 + 9/16
        ("averaged", (2.0 * GROUPS * GROUP_SIZE / 12, 0.75 * GROUPS * GROUP_SIZE / 12)),  # 8 + 4 that differ
        ("saturating", (2.0 / 2.0, 0.75 / 1.375)),
    ],
)
def test_growth_by_hand(kind: str, counted: tuple[float, float]) -> None:
    world = make("base", 0)
    learner = LEARNERS[kind](world)
    rows = [next(i for i in range(len(world.domain)) if world.domain[i] == d) for d in (0, 1, 2)]
    learner.learn(
        [
            result(world, rows[0], 1, 1, 1, 1, 0, 0, 0, 0),
            result(world, rows[1], 1, 0, 0, 0),
            result(world, rows[2], *[1.0] * 16),
        ]
    )
    grown = learner.skill["environment"]
    assert grown[:3] == pytest.approx([world.spec.rate * c / GROUP_SIZE for c in (*counted, 0.0)])
    assert learner.version == 1


def test_a_step_without_a_difference_teaches_nothing() -> None:
    world = make("base", 0)
    for kind in LEARNERS.values():
        learner = kind(world)
        learner.learn([result(world, 0, 1, 1), result(world, 1, 0, 0)])
        assert not learner.skill["environment"].any()


def test_the_command_compares_on_the_same_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--quick", "--steps", "3", "--stretch", "1,2", "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert [(row["learner"], row["stretch"]) for row in shown["rows"]] == [(k, s) for k in LEARNERS for s in (1.0, 2.0)]
    assert all(row["area_gained"] == 0.0 for row in shown["rows"] if row["stretch"] == 1.0)
    assert all(row["area_gained"] != 0.0 for row in shown["rows"] if row["stretch"] == 2.0)
    with pytest.raises(SystemExit):
        main(["--learner", "nobody"])
    assert "no 'nobody'; choose from summed" in capsys.readouterr().err
