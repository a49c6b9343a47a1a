"""Every task equally often. Pain J1, J3."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings, strategies as st

from sortie.scheduling import GroupResult, TaskRecord, build

RECORDS = [TaskRecord(key=f"e/{i}", environment="e") for i in range(10)]


@settings(max_examples=30, deadline=None)
@given(groups=st.integers(1, 10), seed=st.integers(0, 1000))
def test_no_task_is_drawn_twice_before_all_were_drawn_once(groups: int, seed: int) -> None:
    scheduler = build("uniform", RECORDS, seed=seed)
    drawn: Counter[str] = Counter()
    for _ in range(12):
        chosen = scheduler.select(groups, 2)
        drawn.update(a.key for a in chosen)
        assert max(drawn.values()) - min(drawn[record.key] for record in RECORDS) <= 1
        scheduler.observe([GroupResult(key=a.key, assignment=a.id, rewards=(1.0, 0.0)) for a in chosen])


def test_each_epoch_has_an_order_of_its_own() -> None:
    scheduler = build("uniform", RECORDS, seed=5)
    epochs = []
    for _ in range(2):
        chosen = scheduler.select(10, 1)
        epochs.append([a.key for a in chosen])
        scheduler.observe([GroupResult(key=a.key, assignment=a.id, rewards=(0.0,)) for a in chosen])
    assert sorted(epochs[0]) == sorted(epochs[1])
    assert epochs[0] != epochs[1]


def test_an_abandoned_task_is_drawn_again_in_its_epoch() -> None:
    scheduler = build("uniform", RECORDS, seed=5)
    first = scheduler.select(4, 1)
    scheduler.observe(
        [
            GroupResult(key=a.key, assignment=a.id, rewards=(), outcome="abandoned" if i == 0 else "done")
            for i, a in enumerate(first)
        ]
    )
    rest = {a.key for a in scheduler.select(7, 1)}
    assert rest == {record.key for record in RECORDS} - {a.key for a in first[1:]}


def test_a_new_task_joins_the_epoch_that_runs() -> None:
    scheduler = build("uniform", RECORDS, seed=5)
    for _ in range(3):
        chosen = scheduler.select(10, 1)
        scheduler.observe([GroupResult(key=a.key, assignment=a.id, rewards=(0.0,)) for a in chosen])
    scheduler.add([TaskRecord(key="e/new", environment="e")])
    assert [a.key for a in scheduler.select(22, 1)].count("e/new") == 2


def test_it_predicts_what_all_rewards_so_far_say() -> None:
    """Six rewards 1, 1, 1, 0, 0.5, 0.5 and the made-up 0 and 1: mean 5 / 8, mean square 4.5 / 8."""
    scheduler = build("uniform", RECORDS)
    scheduler.observe([GroupResult(key="e/1", assignment=-1, rewards=(1.0, 1.0, 1.0, 0.0, 0.5, 0.5))])
    prediction = scheduler.predict(["e/0", "e/1"])
    variance = 4.5 / 8 - (5 / 8) ** 2
    assert prediction.mean == (5 / 8, 5 / 8)
    assert prediction.variance == (variance, variance)
    assert prediction.std == ((variance / 9) ** 0.5,) * 2
