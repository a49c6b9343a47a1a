"""What holds a run back, read off its folder alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sortie.core.records import RolloutRecord
from sortie.core.run_folder import RunFolder
from sortie.core.trajectory import StopReason, Trajectory
from sortie.orchestrator.doctor.check import Check, Status
from sortie.orchestrator.doctor.run_time import time_checks
from sortie.rollouts.envlog import log_name

WARN, FAIL = 0.1, 0.9
"""Shares from which a loss is worth a warning, and from which nothing else matters."""

_LIMITS = {
    StopReason.TURN_TOKENS: "raise rollouts.limits.turn_tokens, or ask for shorter turns",
    StopReason.ROLLOUT_TOKENS: "raise rollouts.limits.rollout_tokens",
    StopReason.WINDOW: "raise rollouts.limits.window, or shorten what tools return",
    StopReason.TURN_LIMIT: "give the agent more turns (max_turns), or begin with easier levels",
    StopReason.TIME: "raise rollouts.limits.seconds, or find the slow tool below",
}


def run_checks(folder: RunFolder) -> list[Check]:
    """Checks of a run, finished or not."""
    metrics = folder.metrics()
    # A step that was done again after a kill counts once, as it came out last.
    records = list({(r.phase, r.step, r.trajectory.id): r for r in folder.trajectories()}.values())
    trained = [record for record in records if record.phase == "train"]
    if not trained:
        remedy = "start it with `sortie train`, or look at the next one"
        return [Check(name="run", status="fail", finding=f"{folder.name} has no training rollout yet", remedy=remedy)]
    rollouts = [record.trajectory for record in trained]
    return [
        _zero_variance(trained),
        _truncated(rollouts),
        *_errors(rollouts),
        _parse_errors(rollouts),
        _tool_errors(rollouts),
        *_lost_tokens(rollouts),
        *_warnings(folder),
        *time_checks(metrics, records),
    ]


@dataclass(slots=True)
class _Fates:
    """How many groups could teach something, and why the others could not."""

    groups: int = 0
    informative: int = 0
    failed: int = 0
    """All members at 0, or at the lowest reward of the run where that is below 0."""
    solved: int = 0
    """All members at the highest reward of the run."""


def _zero_variance(records: Sequence[RolloutRecord]) -> Check:
    fates = _fates(records)
    share = 1 - fates.informative / fates.groups
    finding = (
        f"{share:.0%} of {fates.groups} groups taught nothing, their rewards being equal "
        f"({fates.failed / fates.groups:.0%} failed as a whole, {fates.solved / fates.groups:.0%} solved as a whole)"
    )
    if fates.failed >= fates.solved:
        remedy = "mix in easier levels, or raise rollouts.group_size so that a rare success is met"
    else:
        remedy = "mix in harder levels: most of these tasks are solved already"
    return _of("zero variance", share, finding, remedy)


def _fates(records: Sequence[RolloutRecord]) -> _Fates:
    rewards = [record.trajectory.reward for record in records if record.trajectory.reward is not None]
    low, high = min([0.0, *rewards]), max([0.0, *rewards])
    fates = _Fates()

    def group(record: RolloutRecord) -> tuple[int, str]:
        return record.step, record.trajectory.id.rpartition(".")[0]

    for _, members in groupby(sorted(records, key=group), key=group):
        values = {record.trajectory.reward for record in members} - {None}
        fates.groups += 1
        fates.informative += len(values) > 1
        fates.failed += values == {low}
        fates.solved += values == {high} and high > low
    return fates


def _truncated(rollouts: Sequence[Trajectory]) -> Check:
    cut = Counter(t.stop_reason for t in rollouts if t.truncated)
    share = cut.total() / len(rollouts)
    if not cut:
        return _of("truncated answers", 0.0, "no rollout was cut by a limit", "")
    (reason, count), *_ = cut.most_common(1)
    finding = f"{share:.0%} of {len(rollouts)} rollouts were cut by a limit, {count} of them by {reason.value}"
    return _of("truncated answers", share, finding, _LIMITS[reason])


def _errors(rollouts: Sequence[Trajectory]) -> list[Check]:
    """One check per environment and boundary at which rollouts broke."""
    broken = [t for t in rollouts if t.error]
    if not broken:
        return [Check(name="errors", status="ok", finding="no rollout broke")]
    checks = []
    for (env, boundary), count in Counter((t.env, t.boundary) for t in broken).most_common():
        first = next(t for t in broken if (t.env, t.boundary) == (env, boundary))
        finding = f"{count} of {len(rollouts)} rollouts broke in {env!r} at {boundary}; the first: {first.error}"
        remedy = f"its traceback is in logs/{log_name(env)} of the run; the rollout is {first.id}"
        status: Status = "fail" if count / len(rollouts) >= 0.5 else "warn"
        checks.append(Check(name="errors", status=status, finding=finding, remedy=remedy, cost=count / len(rollouts)))
    return checks


def _parse_errors(rollouts: Sequence[Trajectory]) -> Check:
    hit = [t for t in rollouts if t.parse_errors]
    share = len(hit) / len(rollouts)
    example = f", such as {hit[-1].id}" if hit else ""
    finding = f"{share:.0%} of rollouts wrote a tool call that could not be read{example}"
    remedy = "show the call format in the environment's examples; raise limits.turn_tokens if the calls are cut"
    return _of("parse errors", share, finding, remedy)


def _tool_errors(rollouts: Sequence[Trajectory]) -> Check:
    calls = [call for t in rollouts for call in t.tools]
    wrong = [call for call in calls if call.error]
    if not calls:
        return _of("tool errors", 0.0, "no tool was called", "")
    share = len(wrong) / len(calls)
    finding = f"{share:.0%} of {len(calls)} tool calls came back as errors"
    if wrong:
        finding += f", the last of {wrong[-1].name}: {wrong[-1].output:.120}"
    return _of("tool errors", share, finding, "check the tool's description and examples against what the model writes")


def _lost_tokens(rollouts: Sequence[Trajectory]) -> Iterable[Check]:
    """What was drawn and cannot train, and rows that broke; nothing where there is none."""
    drawn = sum(t.sampled_tokens for t in rollouts) or 1
    blind = sum(len(n.token_ids) for t in rollouts for n in t.nodes if n.kind == "sampled" and n.logprobs is None)
    if blind:
        finding = f"{blind / drawn:.0%} of the sampled tokens came without log-probabilities and cannot train"
        yield _of("untrainable tokens", blind / drawn, finding, "sample from an engine that returns log-probabilities")
    breaks = sum(bool(t.prefix_breaks) for t in rollouts) / len(rollouts)
    if breaks:
        finding = f"in {breaks:.0%} of rollouts the template rewrote history, so their turns became rows of their own"
        remedy = "choose a renderer that keeps history; `sortie doctor --model NAME` compares"
        yield _of("prefix breaks", breaks, finding, remedy)
    tried = sum(t.attempts - 1 for t in rollouts) / len(rollouts)
    if tried:
        finding = f"{tried:.0%} of rollouts were tried again after failures of the sampler or of resources"
        yield _of("retries", tried, finding, "look at what failed first: logs/ENV.log of the run")


def _warnings(folder: RunFolder) -> list[Check]:
    """What the run itself warned of, each text once; numbers in it may have changed from step to step."""
    said: dict[str, list[dict[str, Any]]] = {}
    for event in folder.events():
        if event["kind"] == "warning":
            said.setdefault("".join(c for c in event["text"] if not c.isdigit()), []).append(event)
    steps = max(len(folder.metrics()), 1)
    return [
        Check(
            name="warnings",
            status="warn",
            finding=f"said {len(events)} times, last at step {events[-1]['step']}: {events[-1]['text']}",
            remedy="the line names its likely cause",
            cost=min(1.0, len(events) / steps),
        )
        for events in said.values()
    ]


def _of(name: str, share: float, finding: str, remedy: str) -> Check:
    """A check whose cost is a share of the run's rollouts."""
    status: Status = "fail" if share >= FAIL else "warn" if share >= WARN else "ok"
    return Check(name=name, status=status, finding=finding, remedy=remedy if status != "ok" else "", cost=share)
