"""Rollouts on disk."""

from __future__ import annotations

import dataclasses
import math
import os
from pathlib import Path

import pytest
from rollout_examples import make_rollout

from sortie.core.errors import UsageError
from sortie.core.rollout_store import RolloutStore


def test_a_rollout_can_be_read_the_moment_it_ended_and_after_its_step_was_sealed(tmp_path: Path) -> None:
    writer, reader = RolloutStore(tmp_path), RolloutStore(tmp_path)
    trajectory, task = make_rollout()
    writer.add(trajectory, task, step=1)
    (before,) = reader.read()
    writer.seal(1)
    (after,) = reader.read()
    assert before.trajectory == after.trajectory == trajectory
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["index.jsonl", "tokens-000001.parquet"]
    writer.close()


def test_a_rollout_that_ended_before_its_first_node_is_read_like_any_other(tmp_path: Path) -> None:
    """A rollout that failed in set-up, or ran out of time in the queue, must not make its run unreadable."""
    store = RolloutStore(tmp_path)
    trajectory, task = make_rollout()
    nothing = dataclasses.replace(trajectory, nodes=[])
    for one in (trajectory, nothing):
        store.add(one, task, step=1)
    store.seal(1)
    assert [record.trajectory for record in store.read()] == [trajectory, nothing]
    store.close()


def test_a_step_can_be_read_alone(tmp_path: Path) -> None:
    store = RolloutStore(tmp_path)
    for step in (1, 1, 2):
        store.add(*make_rollout(member=step), step=step)
    store.seal(1)
    assert [record.serial for record in store.read(1)] == [0, 1]
    assert [record.serial for record in store.read()] == [0, 1, 2]
    store.close()


def test_rollouts_added_to_a_sealed_step_join_it(tmp_path: Path) -> None:
    store = RolloutStore(tmp_path)
    for member in range(2):
        store.add(*make_rollout(member=member), step=1)
        store.seal(1)
    assert [record.trajectory.member for record in store.read(1)] == [0, 1]
    store.close()


def test_a_kill_between_tokens_and_index_costs_only_the_rollout_under_way(tmp_path: Path) -> None:
    killed = RolloutStore(tmp_path)
    killed.add(*make_rollout(member=0), step=1)
    killed.add(*make_rollout(member=1), step=1)
    killed.close()
    index = tmp_path / "index.jsonl"
    whole, torn = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(whole + torn[:30])
    resumed = RolloutStore(tmp_path)
    resumed.add(*make_rollout(member=2), step=1)
    resumed.seal(1)
    assert [record.trajectory.member for record in resumed.read()] == [0, 2]
    resumed.close()


def test_a_kill_between_sealing_and_removing_the_journal_changes_nothing(tmp_path: Path) -> None:
    store = RolloutStore(tmp_path)
    store.add(*make_rollout(), step=1)
    journal = (tmp_path / "tokens-000001.jsonl").read_bytes()
    store.seal(1)
    (tmp_path / "tokens-000001.jsonl").write_bytes(journal)
    assert len(list(store.read())) == 1
    store.close()


def test_a_full_disk_while_sealing_loses_no_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RolloutStore(tmp_path)
    trajectory, task = make_rollout()
    store.add(trajectory, task, step=1)

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(UsageError, match=r"tokens-000001\.parquet: the disk is full"):
            store.seal(1)
    assert next(store.read()).trajectory == trajectory
    store.seal(1)
    assert next(store.read()).trajectory == trajectory
    store.close()


def test_logprobs_come_back_bit_for_bit_and_nan_stays_nan(tmp_path: Path) -> None:
    store = RolloutStore(tmp_path)
    trajectory, task = make_rollout()
    trajectory.nodes[2].logprobs = [math.nan, -1 / 3]
    store.add(trajectory, task, step=1)
    for _ in range(2):
        logprobs = next(store.read()).trajectory.nodes[2].logprobs
        assert logprobs is not None
        assert math.isnan(logprobs[0])
        assert logprobs[1] == -1 / 3
        store.seal(1)
    store.close()


def test_missing_token_arrays_are_named(tmp_path: Path) -> None:
    store = RolloutStore(tmp_path)
    store.add(*make_rollout(), step=1)
    store.seal(1)
    store.close()
    (tmp_path / "tokens-000001.parquet").unlink()
    with pytest.raises(UsageError, match=r"tokens-000001\.parquet lacks the tokens of rollout"):
        list(store.read())
