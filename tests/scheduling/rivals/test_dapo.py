"""Dynamic sampling. Pain J1: groups without a gradient; their replacements are paid for."""

from __future__ import annotations

import json

from sortie.scheduling import Assignment, GroupResult, TaskRecord, build

RECORDS = [TaskRecord(key=f"e/{i}", environment="e") for i in range(40)]


def result(a: Assignment, *rewards: float | None, abandoned: bool = False) -> GroupResult:
    return GroupResult(key=a.key, assignment=a.id, rewards=rewards, outcome="abandoned" if abandoned else "done")


def test_groups_without_variance_are_sent_back_and_others_kept() -> None:
    scheduler = build("dapo", RECORDS)
    a, b, c, d, e, f = scheduler.select(6, 3)
    verdicts = scheduler.observe(
        [
            result(a, 1.0, 0.0, 1.0),
            result(b, 0.0, 0.0, 0.0),
            result(c, 1.0, 1.0, 1.0),
            result(d, 0.3, 0.3, 0.31),
            result(e, None, 1.0, None),
            result(f, abandoned=True),
        ]
    )
    assert verdicts == ["keep", "refill", "refill", "keep", "refill", "refill"]


def test_a_batch_costs_at_most_its_size_times_most() -> None:
    """4 groups at most 2.5 times: 10 in all, so 6 replacements. The next full select is a new batch."""
    scheduler = build("dapo", RECORDS, most=2.5)
    for _ in range(2):
        asked = []
        wanted = 4
        while wanted:
            asked.append(wanted)
            chosen = scheduler.select(wanted, 2)
            wanted = scheduler.observe([result(a, 0.0, 0.0) for a in chosen]).count("refill")
        assert asked == [4, 4, 2]


def test_most_1_replaces_nothing() -> None:
    scheduler = build("dapo", RECORDS, most=1)
    assert scheduler.observe([result(a, 0.0, 0.0) for a in scheduler.select(4, 2)]) == ["keep"] * 4


def test_replacements_go_on_in_the_epoch_and_so_does_a_resumed_run() -> None:
    scheduler = build("dapo", RECORDS, seed=2)
    first = scheduler.select(20, 2)
    verdicts = scheduler.observe([result(a, 0.0, float(i % 2)) for i, a in enumerate(first)])
    assert verdicts.count("refill") == 10
    resumed = build("dapo", RECORDS, seed=2)
    resumed.load_state_dict(json.loads(json.dumps(scheduler.state_dict())))
    second = scheduler.select(10, 2)
    assert [a.key for a in resumed.select(10, 2)] == [a.key for a in second]
    assert not {a.key for a in second} & {a.key for a in first}
    for one in (scheduler, resumed):
        assert one.observe([result(a, 0.0, 0.0) for a in second]) == ["refill"] * 10
