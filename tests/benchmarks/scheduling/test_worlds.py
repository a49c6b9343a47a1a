"""The simulated worlds are what their specs say, and the same for everyone."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.scheduling.learner import Learner
from benchmarks.scheduling.specs import SPECS
from benchmarks.scheduling.worlds import build_world, informative_chance, sigmoid


@pytest.mark.parametrize("name", SPECS)
def test_a_seed_is_a_world(name: str) -> None:
    a, b, other = (build_world(SPECS[name], seed) for seed in (3, 3, 4))
    assert a.records == b.records
    assert a.profiles == b.profiles
    assert np.array_equal(a.own, b.own)
    assert not np.array_equal(a.own, other.own)


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.informative is not None])
def test_a_third_of_groups_is_informative_at_the_start(name: str) -> None:
    world = build_world(SPECS[name], 0)
    p = Learner(world).success()
    assert informative_chance(p, world.checks).mean() == pytest.approx(1 / 3, abs=0.002)
    assert p.mean() < 0.3, "shifted to the hard side, where there is something to learn"


def test_worlds_of_a_seed_differ_only_in_what_their_specs_differ_in() -> None:
    base, costs = (build_world(SPECS[name], 1) for name in ("base", "costs"))
    assert np.array_equal(base.own, costs.own)
    assert [record.text for record in base.records] == [record.text for record in costs.records]
    assert costs.cost.max() / costs.cost.min() == pytest.approx(10.0)
    assert costs.cost.mean() == pytest.approx(1.0)


def test_effects_have_the_spread_that_was_asked_for() -> None:
    worlds = [build_world(SPECS["base"], seed) for seed in range(40)]
    for effects in ("environment_effect", "pattern_effect"):
        drawn = np.concatenate([getattr(world, effects) for world in worlds])
        assert drawn.std() == pytest.approx(1.5 * 1.6, rel=0.1)


def test_environments_come_in_sizes_from_5_to_600() -> None:
    sizes = np.bincount(build_world(SPECS["sizes"], 0).environment)
    assert (sizes.min(), sizes.max(), len(sizes)) == (5, 600, 20)


def test_environments_of_a_domain_show_that_they_are_alike() -> None:
    world = build_world(SPECS["domains"], 0)
    first, second, other = world.environments[0], world.environments[4], world.environments[5]
    assert first.tools == second.tools
    assert not set(first.tools) & set(other.tools)
    assert first.description.split()[:8] == second.description.split()[:8] != other.description.split()[:8]
    assert len(world.environment_effect) == 20
    assert set(world.domain[world.environment < 5]) == {0}


def test_texts_tell_the_pattern_or_only_hint_at_it() -> None:
    base, hints = (build_world(SPECS[name], 0) for name in ("base", "hints"))

    def told(world: object, i: int) -> str:
        return world.records[i].text.replace(str(i), "")  # type: ignore[attr-defined, no-any-return]

    first = {q: told(base, int(np.flatnonzero(base.pattern == q)[0])) for q in range(20)}
    assert len(set(first.values())) == 20
    assert all(told(base, i) == first[int(q)] for i, q in enumerate(base.pattern))
    true = np.mean([told(hints, i) == first[int(q)] for i, q in enumerate(hints.pattern)])
    assert true == pytest.approx(0.525, abs=0.05), "half, and one in twenty of the others by chance"


def test_dense_pairs_are_at_mid_range() -> None:
    p = Learner(build_world(SPECS["dense"], 0)).success()
    assert informative_chance(p, np.ones(len(p), dtype=np.int64)).mean() > 0.95


def test_informative_chance_counts_by_hand() -> None:
    p = np.array([0.5, 0.0, 0.5])
    # Two checks of chance 1/2 make rewards 0, 1/2, 1 with chances 1/4, 1/2, 1/4; two of them are equal with 3/8.
    assert informative_chance(p, np.array([1, 1, 2]), n=2) == pytest.approx([0.5, 0.0, 0.625])


def test_sigmoid_is_finite_far_out() -> None:
    assert sigmoid(np.array([-1000.0, 0.0, 1000.0])) == pytest.approx([0.0, 0.5, 1.0])
