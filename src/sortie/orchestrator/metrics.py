"""What a step reports about its rollouts. Every figure is a plain number, so any tracker takes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sortie.core.group import Group
from sortie.core.trajectory import Trajectory


def rollout_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """Means over all rollouts of a step, also those not trained on; per environment where names carry a slash."""
    rollouts = [t for group in groups for t in group.trajectories]
    metrics = {
        "rollouts": float(len(rollouts)),
        "informative": _mean([float(group.informative) for group in groups]),
        "reward": _mean([t.reward for t in rollouts if t.reward is not None]),
        "scored": _mean([float(t.reward is not None) for t in rollouts]),
        "truncated": _mean([float(t.truncated) for t in rollouts]),
        "turns": _mean([float(t.turns) for t in rollouts]),
        "sampled_tokens": float(sum(t.sampled_tokens for t in rollouts)),
        "untrainable_tokens": float(sum(untrainable_tokens(t) for t in rollouts)),
        "parse_errors": float(sum(t.parse_errors for t in rollouts)),
        "tool_errors": float(sum(call.error for t in rollouts for call in t.tools)),
        "prefix_breaks": float(sum(t.prefix_breaks for t in rollouts)),
        "retries": float(sum(t.attempts - 1 for t in rollouts)),
    }
    for env in sorted({t.env for t in rollouts}):
        of_env = [t for t in rollouts if t.env == env]
        metrics[f"reward/{env}"] = _mean([t.reward for t in of_env if t.reward is not None])
        metrics[f"rollouts/{env}"] = float(len(of_env))
    for reason, count in Counter(t.stop_reason.value for t in rollouts).items():
        metrics[f"stop/{reason}"] = count / len(rollouts)
    for boundary, count in Counter(t.boundary for t in rollouts if t.boundary).items():
        metrics[f"errors/{boundary}"] = float(count)
    return metrics


def untrainable_tokens(trajectory: Trajectory) -> int:
    """Sampled tokens that came without logprobs."""
    return sum(len(n.token_ids) for n in trajectory.nodes if n.kind == "sampled" and n.logprobs is None)


def step_line(step: int, steps: int, metrics: Mapping[str, float], left_s: float) -> str:
    """One line for the console."""
    return (
        f"step {step:>{len(str(steps))}}/{steps}  reward {metrics['reward']:.3f}  "
        f"informative {metrics['informative']:.2f}  {metrics['tokens_per_s']:.0f} tokens/s  "
        f"{metrics['seconds']:.0f} s  left {duration(left_s)}"
    )


def duration(seconds: float) -> str:
    """Minutes and seconds, `12m04s`, with hours where there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
