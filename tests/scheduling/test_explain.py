"""What EnvSched says about itself adds up, and costs nothing when not asked."""

from __future__ import annotations

import json

import pytest

from sortie.scheduling import GroupResult, TaskRecord, build
from sortie.scheduling.envsched import EnvSched


def trained() -> EnvSched:
    records = [
        TaskRecord(key=f"{env}/{i}", environment=env, features={"level": i % 2}, cost=1.0 + (env == "b"))
        for env in "ab"
        for i in range(20)
    ]
    scheduler = build("envsched", records, seed=1)
    assert isinstance(scheduler, EnvSched)
    for version in range(4):
        results = []
        for a in scheduler.select(6, 4):
            rewards = (0.0, 1.0, 1.0, 0.0) if a.key.startswith("a") else (0.0,) * 4
            results.append(
                GroupResult(key=a.key, assignment=a.id, rewards=rewards, version=version, features={"turns": 0.5})
            )
        scheduler.observe(results)
    return scheduler


def test_the_parts_of_a_score_add_up_and_name_why_a_task_was_chosen() -> None:
    scheduler = trained()
    chosen = scheduler.select(6, 4)
    views = {view.key: view for view in scheduler.explain().tasks}
    assert len(views) == 40
    for view in views.values():
        assert view.value == pytest.approx((view.signal + view.spread + view.coverage) / view.divisor)
        assert 0 <= view.low <= view.mean <= view.high <= 1
    assert {key for key, view in views.items() if view.reason} == {a.key for a in chosen}
    assert all(views[a.key].in_flight for a in chosen)
    fresh = {view.environment: view.divisor for view in views.values() if not view.visits}
    assert fresh["b"] == pytest.approx(2 * fresh["a"])
    assert all(view.divisor > fresh[view.environment] for view in views.values() if view.visits)


def test_factors_say_what_was_spent_and_learned() -> None:
    scheduler = trained()
    explained = scheduler.explain([])
    assert explained.tasks == ()
    environments = {view.name: view for view in explained.factors if view.kind == "environment"}
    assert sum(view.groups for view in environments.values()) == 24
    assert environments["a"].realised_variance == pytest.approx(1 / 3)  # of 0, 1, 1, 0, unbiased
    assert environments["b"].trained == 0.0
    assert environments["a"].trained == pytest.approx(1.0 * environments["a"].groups)  # squared advantages: 4 x 1/4
    assert environments["a"].effect > environments["b"].effect
    kinds = {view.kind for view in explained.factors}
    assert kinds == {"environment", "hint", "pattern"}


def test_tasks_of_one_environment_or_of_keys_only() -> None:
    scheduler = trained()
    assert {view.environment for view in scheduler.explain(environment="b").tasks} == {"b"}
    assert [view.key for view in scheduler.explain(["b/3", "a/1"]).tasks] == ["b/3", "a/1"]
    with pytest.raises(KeyError, match="no environment 'c'"):
        scheduler.explain(environment="c")


def test_asking_changes_nothing() -> None:
    scheduler = trained()
    before = json.dumps(scheduler.state_dict())
    scheduler.explain()
    assert json.dumps(scheduler.state_dict()) == before
