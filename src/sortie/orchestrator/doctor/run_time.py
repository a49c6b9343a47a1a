"""Where a run's time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sortie.core.records import RolloutRecord
from sortie.orchestrator.doctor.check import Check
from sortie.orchestrator.metrics import duration

_MUCH_EVALUATION = 0.5
_MUCH_TOOL_TIME = 0.3
_MUCH_REUSE = 0.5


def time_checks(metrics: Sequence[Mapping[str, Any]], records: Sequence[RolloutRecord]) -> list[Check]:
    """Seconds of rolling out, training and evaluation; time in tools; prompts found in kept KV."""
    parts = {
        "rollouts": sum(float(step["rollout_s"]) for step in metrics),
        "training": sum(float(step["train_s"]) for step in metrics),
        "evaluation": evaluation_seconds(records),
    }
    total = sum(parts.values())
    if not metrics or not total:
        return []
    return [_slowest(parts, total, metrics), *_tools(records), *_reuse(metrics)]


def evaluation_seconds(records: Sequence[RolloutRecord]) -> float:
    """How long any evaluation's rollout was in flight: their spans together, without what lies between them."""
    total, reached = 0.0, 0.0
    spans = [(record.at - record.trajectory.seconds, record.at) for record in records if record.phase != "train"]
    for begun, ended in sorted(spans):
        total += max(0.0, ended - max(begun, reached))
        reached = max(reached, ended)
    return total


def _slowest(parts: Mapping[str, float], total: float, metrics: Sequence[Mapping[str, Any]]) -> Check:
    rates = [float(step["tokens_per_s"]) for step in metrics]
    shares = ", ".join(f"{name} {duration(s)} ({s / total:.0%})" for name, s in parts.items())
    finding = f"{shares}; {sum(rates) / len(rates):.0f} sampled tokens per second in rollouts"
    remedies = {
        "rollouts": "more rollouts at once share each product: raise rollouts.max_concurrent or groups",
        "training": "lower rollouts.limits, leave trainer.remat off, or raise trainer.pack_tokens",
        "evaluation": "lower eval.tasks, or evaluate less often (eval.every)",
    }
    slowest = max(parts, key=lambda name: parts[name])
    much = parts["evaluation"] > _MUCH_EVALUATION * total
    cost = parts["evaluation"] / total if much else 0.0
    return Check(name="time", status="warn" if much else "ok", finding=finding, remedy=remedies[slowest], cost=cost)


def _tools(records: Sequence[RolloutRecord]) -> list[Check]:
    spent: dict[str, float] = {}
    for record in records:
        for call in record.trajectory.tools:
            name = f"{record.trajectory.env}.{call.name}"
            spent[name] = spent.get(name, 0.0) + call.seconds
    total = sum(record.trajectory.seconds for record in records)
    share = sum(spent.values()) / total if total else 0.0
    if share < _MUCH_TOOL_TIME:
        return []
    slowest = max(spent, key=lambda name: spent[name])
    finding = f"{share:.0%} of rollout time is spent in tools, most in {slowest} ({duration(spent[slowest])} in all)"
    return [Check(name="slow tool", status="warn", finding=finding, remedy="make it faster, or cache it", cost=share)]


def _reuse(metrics: Sequence[Mapping[str, Any]]) -> list[Check]:
    """Turns of a rollout and siblings of a group begin alike: most of what they read should be found computed."""
    found, computed = (float(metrics[-1].get(f"engine/{name}", 0.0)) for name in ("cached_tokens", "prefilled_tokens"))
    read = found + computed
    if not read:
        return []
    share = found / read
    finding = f"{share:.0%} of {read:.0f} prompt tokens were found in KV that was kept"
    if share >= _MUCH_REUSE:
        return [Check(name="kept KV", status="ok", finding=finding)]
    remedy = "raise engine.kv_memory_mb, or lower rollouts.max_concurrent, so that prefixes stay until they are needed"
    return [Check(name="kept KV", status="warn", finding=finding, remedy=remedy, cost=1 - share)]
