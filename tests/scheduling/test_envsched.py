"""EnvSched learns from few groups what is worth rolling out, and covers the rest."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from learner import Learner

from sortie.core.errors import ConfigError
from sortie.scheduling import GroupResult, TaskRecord, TaskScheduler, build as build_any
from sortie.scheduling.envsched import EnvSched
from sortie.scheduling.graph import mixture

SEEDS = range(6)


def build(name: str, records: list[TaskRecord], **options: Any) -> TaskScheduler:
    """Choosing by value, unless a test asks for sampling."""
    return build_any(name, records, **({"sampled_share": 0.0, **options} if name == "envsched" else options))


def tasks(env: str, number: int, *, cost: float = 1.0, **features: float) -> list[TaskRecord]:
    tag = "-".join(f"{name}{value:g}" for name, value in features.items())
    return [
        TaskRecord(key=f"{env}/{tag}-{i}", environment=env, features=features or None, cost=cost) for i in range(number)
    ]


def show(scheduler: TaskScheduler, key: str, *rewards: float, version: int = 0, **features: float) -> None:
    """A group from outside the scheduler's own assignments."""
    scheduler.observe(
        [GroupResult(key=key, assignment=-1, rewards=rewards, version=version, features=features or None)]
    )


def chance(scheduler: TaskScheduler, key: str, n: int = 8) -> float:
    assert isinstance(scheduler, EnvSched)
    scheduler._group_size = n
    return scheduler.explain([key]).tasks[0].chance


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("levels", [True, False], ids=["given levels", "text only"])
def test_it_shows_a_learner_far_more_informative_groups_than_uniform(seed: int, levels: bool) -> None:
    def share(name: str) -> float:
        return float(np.mean(np.array(Learner(seed, levels=levels).run(name, seed)) > 0))

    assert share("envsched") > share("uniform") + 0.25


@pytest.mark.parametrize("seed", SEEDS)
def test_the_learner_ends_better_than_under_uniform(seed: int) -> None:
    def final(name: str) -> float:
        learner = Learner(seed)
        learner.run(name, seed)
        return float(np.mean([learner.success(record.key) for record in learner.records]))

    assert final("envsched") > 1.4 * final("uniform")


@pytest.mark.parametrize("seed", SEEDS)
def test_graded_rewards_are_chosen_by_how_much_they_vary(seed: int) -> None:
    def variance(name: str) -> float:
        return float(np.mean(Learner(seed, graded=True).run(name, seed)))

    assert variance("envsched") > 1.5 * variance("uniform")


def test_its_predicted_informative_share_comes_true_if_the_learner_stands_still() -> None:
    """Over the last eight steps of six runs, 288 groups: within 0.08."""
    realised, predicted = [], []
    for seed in SEEDS:
        learner = Learner(seed, rate=0.0)
        realised += learner.run("envsched", seed)[-48:]
        predicted.append(learner.predicted)
    assert np.mean(np.array(realised) > 0) == pytest.approx(np.mean(predicted), abs=0.08)


def test_one_step_teaches_about_tasks_never_rolled_out() -> None:
    records = [*tasks("a", 100, level=1), *tasks("a", 100, level=2), *tasks("b", 100, level=1)]
    scheduler = build("envsched", records)
    for i in range(3):
        show(scheduler, f"a/level1-{i}", 1, 0, 1, 0, 1, 0, 0, 1)
        show(scheduler, f"a/level2-{i}", 0, 0, 0, 0, 0, 0, 0, 0)
    easy, hard, elsewhere = scheduler.predict(["a/level1-50", "a/level2-50", "b/level1-50"]).mean
    assert easy > 2 * hard
    assert hard < elsewhere
    assert scheduler.predict(["a/level1-50"]).variance[0] > 2 * scheduler.predict(["a/level2-50"]).variance[0]


def test_no_success_in_one_group_is_unknown_and_in_many_is_out_of_reach() -> None:
    scheduler = build("envsched", tasks("a", 50, level=1))
    assert chance(scheduler, "a/level1-0") > 0.4
    show(scheduler, "a/level1-0", *[0.0] * 8)
    assert chance(scheduler, "a/level1-0") > 0.15
    for i in range(30):
        show(scheduler, f"a/level1-{i}", *[0.0] * 8)
    assert chance(scheduler, "a/level1-0") < 0.06
    assert chance(scheduler, "a/level1-49") < 0.1


FADING: dict[str, Any] = {"strengths": {"forget": 0.5}, "trials": 0}
"""Half of a result's precision goes per version."""


def test_what_was_learned_fades_as_the_policy_moves_on() -> None:
    scheduler = build("envsched", [*tasks("a", 2), *tasks("b", 1)], **FADING)
    prior = scheduler.predict(["a/-0"])
    show(scheduler, "a/-0", *[0.0] * 8)
    fresh = scheduler.predict(["a/-0"]).mean[0]
    show(scheduler, "b/-0", 1.0, 0.0, version=3)
    faded = scheduler.predict(["a/-0"]).mean[0]
    assert fresh < 0.15 < faded < prior.mean[0]
    show(scheduler, "b/-0", 1.0, 0.0, version=60)
    assert scheduler.predict(["a/-0"]).mean[0] == pytest.approx(scheduler.predict(["a/-1"]).mean[0], abs=1e-6)


def test_a_late_result_of_an_old_policy_counts_less() -> None:
    late, on_time = (build("envsched", tasks("a", 2), **FADING) for _ in range(2))
    for scheduler, version in ((late, 3), (on_time, 4)):
        show(scheduler, "a/-1", 1.0, 0.0, version=4)
        show(scheduler, "a/-0", *[0.0] * 8, version=version)
    precision = [s.state_dict()["belief"]["sites"]["precision"][1] for s in (late, on_time)]
    assert precision[0] == pytest.approx(0.5 * precision[1])


def test_a_late_result_is_read_by_what_was_trained_when_its_policy_acted() -> None:
    """What was trained in between is not yet in it: the same result, late, promises more for today."""
    late, on_time = (build("envsched", tasks("a", 40), trials=0) for _ in range(2))
    for scheduler in (late, on_time):
        for version in (1, 2):
            for i in range(18):
                show(scheduler, f"a/-{18 * version - 18 + i}", *[0.0, 1.0] * (2 + 2 * version), version=version)
        show(scheduler, "a/-39", 1.0, 0.0, version=3)
    for scheduler, version in ((late, 1), (on_time, 3)):
        show(scheduler, "a/-38", *[0.0] * 8, version=version)
    exposure = [s.state_dict()["belief"]["sites"]["exposure"][-1][0] for s in (late, on_time)]
    assert exposure == pytest.approx([0.0, 18 * (2.0 + 3.0)])


def test_a_learner_that_improves_where_it_trains_is_followed() -> None:
    """Each group raises the logit of the whole environment by 0.1: 40 groups later, tasks not seen since are expected
    to do as well as they do, though all of them were seen to fail."""
    rng, logit = np.random.default_rng(0), -2.0
    scheduler = build("envsched", tasks("a", 400))
    for version in range(20):
        for i in range(2):
            rewards = (rng.random(16) < 1 / (1 + np.exp(-logit))).astype(float).tolist()
            show(scheduler, f"a/-{2 * version + i}", *rewards, version=version)
            logit += 0.1
    early, never = (float(np.mean(scheduler.predict([f"a/-{i}" for i in r]).mean)) for r in (range(4), range(100, 104)))
    truth = float(1 / (1 + np.exp(-logit)))
    assert early == pytest.approx(truth, abs=0.12)
    assert never == pytest.approx(truth, abs=0.12)
    assert isinstance(scheduler, EnvSched)
    assert sum(view.learned for view in scheduler.explain([]).factors) > 1.0


def test_behaviour_links_tasks_across_environments() -> None:
    """A task that behaved as those that fail elsewhere is expected to do worse than one that behaved as others do."""
    scheduler = build("envsched", [*tasks("a", 20, level=1), *tasks("b", 2, level=2)])
    for i in range(10):
        show(scheduler, f"a/level1-{i}", *[0.0] * 8, loops=1.0)
        show(scheduler, f"a/level1-{i + 10}", *[1.0] * 8, answers=1.0)
    show(scheduler, "b/level2-0", 1.0, 0.0, loops=1.0)
    show(scheduler, "b/level2-1", 1.0, 0.0, answers=1.0)
    looping, answering = scheduler.predict(["b/level2-0", "b/level2-1"]).mean
    assert looping < answering - 0.05


def test_removed_tasks_have_taught_for_the_others_also_after_a_resume() -> None:
    records = tasks("a", 10, level=1)
    scheduler = build("envsched", records)
    for i in range(5):
        show(scheduler, f"a/level1-{i}", *[0.0] * 8)
    before = scheduler.predict(["a/level1-9"])
    scheduler.remove([f"a/level1-{i}" for i in range(5)])
    again = build("envsched", records[5:])
    again.load_state_dict(json.loads(json.dumps(scheduler.state_dict())))
    for each in (scheduler, again):
        assert each.predict(["a/level1-9"]).mean == pytest.approx(before.mean)
        assert each.predict(["a/level1-9"]).std == pytest.approx(before.std)


def test_predictions_are_in_the_units_of_the_reward() -> None:
    """Rewards of -1 and 3: a mean near 1, and a variance near (3 - -1)^2 / 4."""
    scheduler = build("envsched", tasks("a", 2))
    for _ in range(40):
        show(scheduler, "a/-0", -1.0, 3.0, 3.0, -1.0)
    prediction = scheduler.predict(["a/-0"])
    assert prediction.mean[0] == pytest.approx(1.0, abs=0.2)
    assert prediction.variance[0] == pytest.approx(4.0, rel=0.1)
    assert 0.0 < prediction.std[0] < 0.5


def run(scheduler: TaskScheduler, steps: int, groups: int, rewards: dict[str, tuple[float, ...]]) -> Counter[str]:
    """Groups per environment, where an environment's rewards are always the same."""
    shares: Counter[str] = Counter()
    for version in range(steps):
        chosen = scheduler.select(groups, 4)
        per_step = Counter(a.key.partition("/")[0] for a in chosen)
        shares += per_step
        scheduler.observe(
            [
                GroupResult(key=a.key, assignment=a.id, rewards=rewards[a.key.partition("/")[0]], version=version)
                for a in chosen
            ]
        )
    return shares


def test_no_environment_starves_and_none_takes_more_than_its_cap() -> None:
    """Of 40 x 8 groups, 25% of an equal share, 40, are owed to the hopeless environment; nothing else draws it."""
    records = [*tasks("good", 300), *tasks("hopeless", 5)]
    scheduler = build(
        "envsched", records, seed=2, random_share=0.0, coverage=0.0, spread=0.0, least_share=0.25, cap=0.9
    )
    shares = run(scheduler, 40, 8, {"good": (1.0, 0.0, 1.0, 0.0), "hopeless": (0.0,) * 4})
    assert 40 <= shares["hopeless"] <= 60
    assert shares["good"] <= 40 * 7  # int(0.9 * 8) = 7


def test_many_environments_each_get_their_turn() -> None:
    records = [task for e in range(30) for task in tasks(f"e{e}", 4)]
    scheduler = build("envsched", records, seed=2, random_share=0.0, coverage=0.0, spread=0.0, least_share=0.5)
    good = {f"e{e}": (1.0, 0.0, 1.0, 0.0) if e < 2 else (0.0,) * 4 for e in range(30)}
    shares = run(scheduler, 60, 4, good)  # 60 x 4 x 0.5 / 30 = 4 each
    assert min(shares[f"e{e}"] for e in range(30)) >= 3


def test_the_cap_gives_way_when_the_others_have_no_more_tasks() -> None:
    scheduler = build("envsched", [*tasks("big", 30), *tasks("small", 1)], cap=0.5)
    chosen = Counter(a.key.partition("/")[0] for a in scheduler.select(8, 2))
    assert chosen == {"big": 7, "small": 1}


def test_a_random_share_of_one_is_uniform_over_tasks() -> None:
    """Level 2 holds 3 tasks in 4, and gets about as much, though all that is informative is level 1."""
    scheduler = build("envsched", [*tasks("a", 50, level=1), *tasks("a", 150, level=2)], random_share=1.0)
    drawn: Counter[str] = Counter()
    for version in range(50):
        for a in scheduler.select(8, 4):
            level = a.key.partition("/")[2].partition("-")[0]
            drawn[level] += 1
            rewards = (1.0, 0.0) if level == "level1" else (0.0, 0.0)
            scheduler.observe([GroupResult(key=a.key, assignment=a.id, rewards=rewards, version=version)])
    assert drawn["level2"] / 400 == pytest.approx(0.75, abs=0.08)


def test_unseen_patterns_are_covered_before_known_ones_are_repeated() -> None:
    records = [task for level in range(8) for task in tasks("a", 20, level=level)]
    scheduler = build("envsched", records, random_share=0.0)
    levels = {a.key.partition("-")[0] for a in scheduler.select(8, 4)}
    assert len(levels) == 8


def test_the_cheaper_of_two_equal_tasks_is_preferred() -> None:
    records = [*tasks("a", 20, cost=10.0, kind=1.0), *tasks("a", 20, cost=1.0, kind=2.0)]
    scheduler = build("envsched", records, random_share=0.0, coverage=0.0)
    assert all(a.key.startswith("a/kind2") for a in scheduler.select(10, 4))


def test_a_task_must_cost_something() -> None:
    with pytest.raises(ConfigError, match="task 'a/-0' costs 0; costs must be above 0"):
        build("envsched", tasks("a", 1, cost=0.0))


@pytest.mark.parametrize("random_share", [0.0, 1.0], ids=["by value", "at random"])
def test_one_select_holds_no_more_of_an_environment_than_its_cap(random_share: float) -> None:
    """int(0.5 x 8) = 4, whether it is favoured by value or by its size."""
    records = [*tasks("good", 300), *tasks("poor", 20), *tasks("worse", 20)]
    scheduler = build("envsched", records, cap=0.5, random_share=random_share)
    rewards = {"good": (1.0, 0.0, 1.0, 0.0), "poor": (0.0,) * 4, "worse": (0.0,) * 4}
    for _ in range(10):
        assert run(scheduler, 1, 8, rewards)["good"] <= 4


def test_patterns_in_flight_count_as_covered() -> None:
    records = [task for level in range(8) for task in tasks("a", 20, level=level)]
    scheduler = build("envsched", records, random_share=0.0, spread=0.0)
    flights = [a.key.partition("-")[0] for _ in range(2) for a in scheduler.select(4, 4)]
    assert len(set(flights)) == 8


@pytest.mark.parametrize(("spread", "chosen"), [(0.0, "kind1"), (5.0, "kind2")])
def test_an_unsure_signal_is_preferred_as_much_as_its_weight_says(spread: float, chosen: str) -> None:
    scheduler = build(
        "envsched", [*tasks("a", 20, kind=1), *tasks("a", 20, kind=2)], random_share=0.0, coverage=0.0, spread=spread
    )
    for i in range(20):
        show(scheduler, f"a/kind1-{i}", *[1.0, 0.0] * 4)
    assert {a.key.partition("-")[0] for a in scheduler.select(5, 8)} == {f"a/{chosen}"}


def test_shares_are_of_recent_groups() -> None:
    scheduler = build("envsched", [*tasks("a", 20), *tasks("b", 1)], memory=0.8)
    for i in range(20):
        show(scheduler, f"a/-{i}", 0.0, 1.0)
    show(scheduler, "b/-0", 0.0, 1.0, version=50)
    assert scheduler.metrics()["share/b"] > 0.99


def test_what_removed_tasks_taught_fades_too() -> None:
    scheduler = build("envsched", [*tasks("a", 2), *tasks("b", 1)], **FADING)
    alone = build("envsched", [*tasks("a", 2)[1:], *tasks("b", 1)], **FADING)
    show(scheduler, "a/-0", *[0.0] * 8)
    scheduler.remove(["a/-0"])
    for each in (scheduler, alone):
        show(each, "b/-0", 1.0, 0.0, version=60)
    assert scheduler.predict(["a/-1"]).mean == pytest.approx(alone.predict(["a/-1"]).mean)


def test_an_unvisited_task_is_expected_to_behave_as_those_of_its_hint() -> None:
    """Seen: hint 0 shows pattern 1 three times and pattern 2 once, hint 1 nothing. By hand, with one group's weight on
    the shares of all: hint 0 (3 + 3/4) / 5, hint 1 the shares of all."""
    mixed = mixture(np.zeros(4, dtype=int), np.array([1, 1, 1, 2]), np.ones(4), 2, 3)
    assert mixed == pytest.approx(np.array([[0, 0.75, 0.25], [0, 0.75, 0.25]]))
    mixed = mixture(np.array([0, 0, 1]), np.array([1, 1, 2]), np.ones(3), 2, 3)
    assert mixed == pytest.approx(np.array([[0, (2 + 2 / 3) / 3, (1 / 3) / 3], [0, (2 / 3) / 2, (1 + 1 / 3) / 2]]))


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"scheduler 'envsched': least_share: .*less than or equal to 0.5, got 0.9"):
        build("envsched", tasks("a", 1), least_share=0.9)
    with pytest.raises(ConfigError, match=r"strengths.environment: .*greater than 0, got -1"):
        build("envsched", tasks("a", 1), strengths={"environment": -1})


def test_a_lot_of_untried_tasks_lends_its_value_to_no_task_that_was_tried() -> None:
    """Every place but the last goes to an untried task: solved ones are candidates of their own, and worth less."""
    records = tasks("a", 12, level=1)
    scheduler = build("envsched", records, random_share=0.0, least_share=0.0)
    for i in range(0, 12, 2):
        for _ in range(3):
            show(scheduler, records[i].key, *[1.0] * 8)
    for i in (1, 3):
        show(scheduler, records[i].key, *[0.0, 1.0] * 4)
    chosen = {a.key for a in scheduler.select(6, 8)}
    assert chosen == {records[i].key for i in range(1, 12, 2)}


def test_repeat_puts_tasks_not_seen_before_first() -> None:
    records = tasks("a", 8, level=1)
    mixed = [record.key for record in records[:3]]

    def chosen(repeat: float) -> set[str]:
        scheduler = build("envsched", records, random_share=0.0, least_share=0.0, coverage=0.0, repeat=repeat)
        for key in mixed:
            show(scheduler, key, *[0.0, 1.0] * 4)
        return {a.key for a in scheduler.select(3, 8)}

    assert chosen(0.0) == set(mixed)
    assert not chosen(1.0) & set(mixed)


def test_one_of_few_environments_may_have_one_and_a_half_equal_shares_whatever_the_cap() -> None:
    """int(1.5 / 2 x 8) = 6 of 8, with a cap of a fifth."""
    scheduler = build("envsched", [*tasks("good", 300), *tasks("poor", 20)], cap=0.2, random_share=0.0)
    rewards = {"good": (1.0, 0.0, 1.0, 0.0), "poor": (0.0,) * 4}
    assert max(run(scheduler, 1, 8, rewards)["good"] for _ in range(10)) == 6


def test_the_sampled_share_takes_all_that_may_be_informative_and_not_only_the_most_uncertain() -> None:
    """Tasks solved 7 times of 8 get places too; hopeless ones hardly any."""
    records = [*tasks("half", 200), *tasks("easy", 200), *tasks("never", 200)]
    rewards = {"half": (1.0, 0.0) * 4, "easy": (1.0,) * 7 + (0.0,), "never": (0.0,) * 8}

    def spent(share: float) -> Counter[str]:
        scheduler = build("envsched", records, sampled_share=share, random_share=0.0, least_share=0.0, cap=1.0)
        run(scheduler, 3, 8, rewards)
        return run(scheduler, 5, 12, rewards)

    sampled, by_value = spent(1.0), spent(0.0)
    assert by_value["easy"] < 6
    assert sampled["easy"] > 12
    assert sampled["half"] > 12
    assert sampled["never"] < 6


def test_a_sampled_place_is_named_as_such() -> None:
    scheduler = build("envsched", tasks("a", 40), sampled_share=1.0, random_share=0.0, least_share=0.0)
    assert isinstance(scheduler, EnvSched)
    chosen = scheduler.select(4, 8)
    assert {view.reason for view in scheduler.explain([a.key for a in chosen]).tasks} == {"sampled"}


def test_sampled_places_go_less_often_to_what_costs_more() -> None:
    """Ten times the cost, a tenth of the chance to be kept."""
    records = [*tasks("a", 200, cost=10.0, kind=1.0), *tasks("a", 200, cost=1.0, kind=2.0)]
    chosen: Counter[str] = Counter()
    for seed in SEEDS:
        scheduler = build("envsched", records, seed=seed, sampled_share=1.0, random_share=0.0, least_share=0.0)
        chosen += Counter(a.key.partition("-")[0] for a in scheduler.select(40, 8))
    assert chosen["a/kind2"] > 5 * chosen["a/kind1"]


@pytest.mark.parametrize("sampled_share", [0.5, 1.0])
def test_the_shares_together_never_fill_more_places_than_there_are(sampled_share: float) -> None:
    scheduler = build("envsched", tasks("a", 400), sampled_share=sampled_share, random_share=0.7)
    assert all(len(scheduler.select(20, 8)) == 20 for _ in range(5))


def test_with_every_task_in_flight_the_next_select_repeats_some() -> None:
    scheduler = build("envsched", tasks("a", 3), sampled_share=0.8)
    first = scheduler.select(3, 8)
    assert {a.key for a in scheduler.select(2, 8)} <= {a.key for a in first}
