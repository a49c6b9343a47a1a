"""What every task scheduler promises, over all of them. Pain J1, J3, J5, J8."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from sortie.core.errors import ConfigError, UnknownName
from sortie.scheduling import (
    SCHEDULERS,
    Assignment,
    EnvironmentRecord,
    GroupResult,
    TaskRecord,
    TaskScheduler,
    build,
)
from sortie.scheduling.keyed import uniform

pytestmark = pytest.mark.parametrize("name", sorted(SCHEDULERS))
BRIEF = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def tasks(*sizes: int, level: bool = True) -> list[TaskRecord]:
    """One environment per size."""
    return [
        TaskRecord(
            key=f"env{e}/{i}",
            environment=f"env{e}",
            text=f"Task of kind {'abc'[i % 3] * 4}: {i}",
            features={"level": i % 3} if level else None,
        )
        for e, size in enumerate(sizes)
        for i in range(size)
    ]


def answer(assignment: Assignment, version: int = 0) -> GroupResult:
    """A result that depends on nothing but the assignment."""
    rewards = [float(uniform(7, assignment.key, assignment.id, i) < 0.4) for i in range(assignment.rollouts)]
    return GroupResult(
        key=assignment.key,
        assignment=assignment.id,
        rewards=tuple(rewards),
        features={"turns": 0.1 * (assignment.id % 4)},
        version=version,
    )


def step(scheduler: TaskScheduler, version: int, groups: int = 5, group_size: int = 4) -> list[str]:
    chosen = scheduler.select(groups, group_size)
    scheduler.observe([answer(a, version) for a in chosen])
    return [a.key for a in chosen]


@BRIEF
@given(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4), groups=st.integers(1, 20), n=st.integers(1, 8))
def test_a_select_is_exact_and_repeats_no_task_while_others_are_left(
    name: str, sizes: list[int], groups: int, n: int
) -> None:
    scheduler = build(name, tasks(*sizes), seed=3)
    ids: set[int] = set()
    for version in range(4):
        chosen = scheduler.select(groups, n)
        assert sum(a.rollouts for a in chosen) == groups * n
        repeats = Counter(a.key for a in chosen)
        assert max(repeats.values()) == -(-groups // sum(sizes))
        assert not ids & {a.id for a in chosen}
        ids |= {a.id for a in chosen}
        assert len(ids) == groups * (version + 1)
        assert set(scheduler.observe([answer(a, version) for a in chosen])) <= {"keep", "refill"}


def test_replacements_end_and_are_rollouts_like_any_other(name: str) -> None:
    """With nothing to learn anywhere, a batch that is filled up again and again still ends, and all is counted."""
    scheduler = build(name, tasks(30, 30), seed=3)
    for version in range(3):
        wanted, rounds, ids = 5, 0, set()
        while wanted:
            chosen = scheduler.select(wanted, 4)
            assert sum(a.rollouts for a in chosen) == 4 * wanted
            ids |= {a.id for a in chosen}
            results = [GroupResult(key=a.key, assignment=a.id, rewards=(0.0,) * 4, version=version) for a in chosen]
            wanted, rounds = scheduler.observe(results).count("refill"), rounds + 1
        assert len(ids) <= 5 * 5
        assert rounds <= 5
    assert scheduler.metrics()["in_flight"] == 0


@BRIEF
@given(resume_at=st.integers(0, 7), level=st.booleans(), settled=st.integers(0, 5))
def test_a_resumed_run_selects_as_the_uninterrupted_one(name: str, resume_at: int, level: bool, settled: int) -> None:
    """Also at the end of an epoch, with assignments in flight, and if the tasks come in another order."""
    records = tasks(7, 13, level=level)  # 20 tasks: an epoch ends after every fourth step

    def run(interrupt: bool) -> list[list[tuple[int, str]]]:
        scheduler = build(name, records, seed=11)
        out, open_ = [], []
        for version in range(8):
            if interrupt and version == resume_at:
                state = json.loads(json.dumps(scheduler.state_dict()))
                scheduler = build(name, records[::-1], seed=11)
                scheduler.load_state_dict(state)
            chosen = scheduler.select(5, 4)
            out.append([(a.id, a.key) for a in chosen])
            open_ += chosen
            scheduler.observe([answer(a, version) for a in open_[:settled]])
            open_ = open_[settled:] if len(open_) < 12 else []
        return out

    assert run(interrupt=True) == run(interrupt=False)


def test_selections_in_flight_are_not_repeated_while_other_tasks_are_left(name: str) -> None:
    scheduler = build(name, tasks(6, 6), seed=1)
    flights = [scheduler.select(4, 2) for _ in range(3)]
    assert len({a.key for flight in flights for a in flight}) == 12
    assert scheduler.metrics()["in_flight"] == 12
    fourth = scheduler.select(4, 2)  # everything is out: a task is chosen again rather than nothing
    assert len({a.key for a in fourth}) == 4
    scheduler.observe([answer(a) for a in flights[1]])
    back = {a.key for a in flights[1]} - {a.key for a in fourth}
    assert back <= {a.key for a in scheduler.select(len(back) or 1, 2)}


def test_an_abandoned_assignment_frees_its_task_and_teaches_nothing(name: str) -> None:
    scheduler = build(name, tasks(1), seed=1)
    before = scheduler.predict(["env0/0"])
    (a,) = scheduler.select(1, 4)
    scheduler.observe([GroupResult(key=a.key, assignment=a.id, rewards=(1.0,) * 4, outcome="abandoned", version=3)])
    assert scheduler.metrics()["in_flight"] == 0
    assert scheduler.predict(["env0/0"]) == before


def test_missing_rewards_are_left_out_of_the_statistics(name: str) -> None:
    records = tasks(4)
    with_none, without = build(name, records), build(name, records)
    key = records[0].key
    with_none.observe([GroupResult(key=key, assignment=-1, rewards=(1.0, None, 0.0, None, 1.0))])
    without.observe([GroupResult(key=key, assignment=-1, rewards=(1.0, 0.0, 1.0))])
    assert with_none.predict([key]) == without.predict([key])
    with_none.observe([GroupResult(key=key, assignment=-1, rewards=(None, None))])
    assert with_none.predict([key]) == without.predict([key])


@BRIEF
@given(seed=st.integers(0, 1000))
def test_graded_missing_and_abandoned_results_in_any_mixture_leave_finite_beliefs(name: str, seed: int) -> None:
    """Rewards between -2 and 3, a third of them missing, some groups abandoned: predictions stay within that range."""
    records = tasks(6, 9)
    scheduler = build(name, records, seed=seed)
    for version in range(6):
        results = []
        for a in scheduler.select(4, 4):
            draws = [uniform(seed, a.id, i) for i in range(a.rollouts)]
            rewards = tuple(None if u < 1 / 3 else 5.0 * u - 2.0 for u in draws)
            outcome = "abandoned" if uniform(seed, "gone", a.id) < 0.2 else "done"
            results.append(
                GroupResult(key=a.key, assignment=a.id, rewards=rewards, version=version, outcome=outcome)  # type: ignore[arg-type]
            )
        scheduler.observe(results)
    prediction = scheduler.predict([record.key for record in records])
    assert all(-2.0 <= mean <= 3.0 for mean in prediction.mean)
    assert all(0.0 <= std <= 5.0 for std in prediction.std)
    assert all(0.0 <= variance <= 6.5 for variance in prediction.variance)
    assert all(value == value for value in scheduler.metrics().values())


def test_a_result_delivered_again_changes_nothing(name: str) -> None:
    scheduler = build(name, tasks(3), seed=1)
    result = answer(scheduler.select(1, 4)[0])
    scheduler.observe([result])
    state = json.dumps(scheduler.state_dict())
    scheduler.observe([result, result])
    assert json.dumps(scheduler.state_dict()) == state


def test_a_result_of_another_task_is_refused(name: str) -> None:
    scheduler = build(name, tasks(3), seed=1)
    (a,) = scheduler.select(1, 4)
    other = next(record.key for record in tasks(3) if record.key != a.key)
    with pytest.raises(ValueError, match=f"assignment {a.id} was of task"):
        scheduler.observe([GroupResult(key=other, assignment=a.id, rewards=(1.0,))])


def test_a_reward_that_is_no_number_is_refused_and_nothing_changes(name: str) -> None:
    scheduler = build(name, tasks(3), seed=1)
    good, a = scheduler.select(2, 2)
    state = json.dumps(scheduler.state_dict())
    with pytest.raises(ValueError, match=f"a reward of task '{a.key}' is nan; one that was not scored must be None"):
        scheduler.observe(
            [
                GroupResult(key=good.key, assignment=good.id, rewards=(1.0, 0.0)),
                GroupResult(key=a.key, assignment=a.id, rewards=(1.0, float("nan"))),
            ]
        )
    assert json.dumps(scheduler.state_dict()) == state


def test_removed_tasks_are_never_selected_and_their_results_are_ignored(name: str) -> None:
    scheduler = build(name, tasks(6), seed=1)
    flight = scheduler.select(6, 2)
    scheduler.remove(["env0/0", "env0/1", "not/there"])
    scheduler.observe([answer(a) for a in flight])
    for version in range(3):
        assert set(step(scheduler, version, groups=4)) == {f"env0/{i}" for i in range(2, 6)}
    with pytest.raises(KeyError, match="env0/0"):
        scheduler.predict(["env0/0"])
    scheduler.remove([f"env0/{i}" for i in range(6)])
    scheduler.metrics()
    with pytest.raises(ValueError, match="no tasks to choose from"):
        scheduler.select(1, 1)
    scheduler.add(tasks(6)[:1])
    assert step(scheduler, 4, groups=1) == ["env0/0"]


def test_an_environment_added_while_running_is_selected_soon(name: str) -> None:
    scheduler = build(name, tasks(8), seed=1)
    for version in range(4):
        step(scheduler, version)
    scheduler.add(tasks(8, 4))
    seen = {key for version in range(4, 8) for key in step(scheduler, version)}
    assert len(seen & {f"env1/{i}" for i in range(4)}) >= 2


def test_metrics_are_plain_finite_numbers_with_a_share_per_environment(name: str) -> None:
    scheduler = build(name, tasks(5, 5), environments=[EnvironmentRecord(name="env1")], seed=1)
    for version in range(3):
        metrics = scheduler.metrics()
        assert all(type(value) is float and value == value for value in metrics.values()), metrics
        assert {"coverage", "informative_share", "in_flight", "share/env0", "share/env1"} <= set(metrics)
        step(scheduler, version)
    metrics = scheduler.metrics()
    assert metrics["share/env0"] + metrics["share/env1"] == pytest.approx(1.0)
    assert 0 < metrics["coverage"] <= 1


def test_the_seed_decides_the_order(name: str) -> None:
    keys = [[a.key for a in build(name, tasks(30, 30), seed=seed).select(10, 4)] for seed in (1, 1, 2)]
    assert keys[0] == keys[1] != keys[2]


def test_asking_for_nothing_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="at least one group of one rollout, got 0 of 4"):
        build(name, tasks(3)).select(0, 4)


def test_wrong_names_and_options_are_told_with_the_right_ones(name: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown scheduler '{name}x'.*did you mean '{name}'.*envsched, .*uniform"):
        build(f"{name}x", tasks(1))
    with pytest.raises(ConfigError, match=f"scheduler '{name}': unknown option 'colour'"):
        build(name, tasks(1), colour="red")


def test_importing_the_package_loads_nothing_heavy(name: str) -> None:
    code = (
        "import sys; import sortie.scheduling as s; "
        f"s.build({name!r}, [s.TaskRecord(key='a/b', environment='a')]).select(1, 1); "
        "print([m for m in ('torch', 'scipy', 'transformers', 'matplotlib', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
