"""What holds a run back, most costly first."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_run import rollout, stored, task

from sortie.core.records import RolloutRecord
from sortie.core.run_folder import RunFolder
from sortie.core.trajectory import StopReason, ToolRecord, Trajectory
from sortie.orchestrator.doctor.check import Check, most_costly_first
from sortie.orchestrator.doctor.run_report import run_checks
from sortie.orchestrator.doctor.run_time import evaluation_seconds


def named(checks: list[Check], name: str) -> Check:
    (found,) = [check for check in checks if check.name == name]
    return found


def group(number: int, *rewards: float | None, **fields: object) -> list[Trajectory]:
    return [rollout(reward, number, member, **fields) for member, reward in enumerate(rewards)]


def test_a_sound_run_has_nothing_to_look_at(tmp_path: Path) -> None:
    checks = run_checks(stored(tmp_path, [group(0, 1.0, 0.0), group(1, 0.0, 1.0)]))
    assert {check.status for check in checks} == {"ok"}
    assert [check.remedy for check in checks if check.name != "time"] == [""] * (len(checks) - 1)


@pytest.mark.parametrize(("rewards", "advice"), [((0.0, 0.0), "easier levels"), ((1.0, 1.0), "harder levels")])
def test_groups_without_differences_are_told_apart_by_their_fate(
    tmp_path: Path, rewards: tuple[float, float], advice: str
) -> None:
    """Pain F1, B7."""
    found = named(
        run_checks(stored(tmp_path, [group(0, *rewards), group(1, *rewards), group(2, 0.0, 1.0)])), "zero variance"
    )
    assert found.status == "warn"
    assert found.finding.startswith("67% of 3 groups taught nothing")
    assert advice in found.remedy
    assert found.cost == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        (StopReason.TURN_TOKENS, "turn_tokens"),
        (StopReason.ROLLOUT_TOKENS, "rollout_tokens"),
        (StopReason.WINDOW, "window"),
        (StopReason.TURN_LIMIT, "max_turns"),
        (StopReason.TIME, "seconds"),
    ],
)
def test_a_run_that_is_all_cut_off_fails_and_names_the_limit_to_raise(
    tmp_path: Path, reason: StopReason, advice: str
) -> None:
    """Pain B7: everything clipped and no reward ever."""
    found = named(run_checks(stored(tmp_path, [group(0, 0.0, 0.0, stop_reason=reason)])), "truncated answers")
    assert (found.status, found.cost) == ("fail", 1.0)
    assert f"2 of them by {reason.value}" in found.finding
    assert advice in found.remedy


def test_errors_name_environment_boundary_first_text_and_log(tmp_path: Path) -> None:
    """Pain K4."""
    broken = group(0, None, stop_reason=StopReason.ERROR, error="no such shelf", boundary="env")
    found = named(run_checks(stored(tmp_path, [broken, group(1, 1.0, 0.0, 1.0)])), "errors")
    assert found.status == "warn"
    assert found.finding == "1 of 4 rollouts broke in 'shop' at env; the first: no such shelf"
    assert "logs/shop.log" in found.remedy


def test_calls_that_cannot_be_read_and_calls_that_fail_are_counted(tmp_path: Path) -> None:
    unread = group(0, 1.0, 0.0, parse_errors=1)
    for member in unread:
        member.tools = [ToolRecord(name="buy", arguments={}, output="error: sold out", error=True, seconds=0.9)]
    checks = run_checks(stored(tmp_path, [unread]))
    assert named(checks, "parse errors").finding.startswith("100% of rollouts wrote a tool call")
    assert "the last of buy: error: sold out" in named(checks, "tool errors").finding
    assert (
        named(checks, "slow tool").finding == "90% of rollout time is spent in tools, most in shop.buy (0m02s in all)"
    )


def test_time_is_split_and_much_evaluation_is_said(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, "r") as folder:
        folder.add_rollout(rollout(seconds=90.0), task(0), 0, "before")
        folder.add_rollout(rollout(), task(0), 1)
        folder.append_metrics({"step": 1, "rollout_s": 6.0, "train_s": 4.0, "tokens_per_s": 50.0})
    found = named(run_checks(RunFolder.open("r", tmp_path)), "time")
    assert "rollouts 0m06s (6%), training 0m04s (4%), evaluation 1m30s (90%)" in found.finding
    assert "50 sampled tokens per second" in found.finding
    assert found.status == "warn"
    assert "eval.tasks" in found.remedy


@pytest.mark.parametrize(("cached", "status"), [(900.0, "ok"), (100.0, "warn")])
def test_prompts_that_are_computed_again_and_again_are_said(tmp_path: Path, cached: float, status: str) -> None:
    folder = stored(tmp_path, [group(0, 1.0, 0.0)])
    counts = {"engine/cached_tokens": cached, "engine/prefilled_tokens": 1000 - cached}
    folder.append_metrics({"step": 2, "rollout_s": 1.0, "train_s": 1.0, "tokens_per_s": 9.0, **counts})
    folder.close()
    found = named(run_checks(RunFolder.open("r", tmp_path)), "kept KV")
    assert found.finding == f"{cached / 1000:.0%} of 1000 prompt tokens were found in KV that was kept"
    assert found.status == status


def test_evaluation_time_is_that_of_overlapping_rollouts_once_and_of_interruptions_never() -> None:
    def record(begun: float, ended: float, phase: str = "after") -> RolloutRecord:
        trajectory = rollout(seconds=ended - begun)
        return RolloutRecord(serial=0, step=0, phase=phase, at=ended, task=task(0), trajectory=trajectory)

    spans = [record(10, 20), record(12, 15), record(18, 25), record(1000, 1005), record(30, 90, "train")]
    assert evaluation_seconds(spans) == 20.0


def test_what_the_run_warned_of_is_gathered_by_text(tmp_path: Path) -> None:
    folder = stored(tmp_path, [group(0, 1.0, 0.0)])
    for step in (1, 2):
        folder.append_event("warning", step=step, text=f"{step} steps in a row had no informative group")
    folder.close()
    found = named(run_checks(RunFolder.open("r", tmp_path)), "warnings")
    assert found.finding == "said 2 times, last at step 2: 2 steps in a row had no informative group"


def test_tokens_that_cannot_train_breaks_and_retries_show_where_there_are_any(tmp_path: Path) -> None:
    odd = group(0, 1.0, 0.0, prefix_breaks=1, attempts=2)
    odd[0].nodes[1].logprobs = None
    checks = run_checks(stored(tmp_path, [odd]))
    assert named(checks, "untrainable tokens").cost == 0.5
    assert named(checks, "prefix breaks").cost == 1.0
    assert named(checks, "retries").cost == 1.0


def test_a_step_done_twice_counts_once_as_it_came_out_last(tmp_path: Path) -> None:
    """Pain J1: after a kill, a step is done again."""
    twice = [group(0, 0.0, 0.0), group(0, 0.0, 1.0)]
    found = named(run_checks(stored(tmp_path, [twice[0] + twice[1]])), "zero variance")
    assert found.finding.startswith("0% of 1 groups")


def test_a_run_without_training_fails(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, "r").close()
    (found,) = run_checks(RunFolder.open("r", tmp_path))
    assert found.status == "fail"


def test_failures_come_first_then_what_costs_most() -> None:
    def check(name: str, status: str, cost: float) -> Check:
        return Check(name=name, status=status, finding="", cost=cost)  # type: ignore[arg-type]

    checks = [check("a", "ok", 0.9), check("b", "warn", 0.2), check("c", "warn", 0.5), check("d", "fail", 0.1)]
    assert [c.name for c in most_costly_first(checks)] == ["d", "c", "b", "a"]
