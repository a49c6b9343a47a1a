"""Each step proves that it did something; what it cannot prove, it says loudly."""

from __future__ import annotations

from collections.abc import Mapping

from sortie.core.policy import PolicyVersion
from sortie.training.batching import Batch
from sortie.training.client import OptimOutput, StepOutput

RATIO_TOLERANCE = {"float32": 0.01, "bfloat16": 0.1}
"""How far the mean importance ratio may be from 1 at lag 0, by dtype of the base model."""


def step_warnings(
    batch: Batch, passed: StepOutput, moved: OptimOutput, served: PolicyVersion, previous: PolicyVersion, dtype: str
) -> list[str]:
    """One line with the likely cause for each promise the step did not keep."""
    lines = []
    if batch.trainable_tokens == 0:
        lines.append("no trainable token: does the sampler return logprobs?")
    if moved.update_norm == 0:
        lines.append("the optimiser moved no weight: is the learning rate too small for float32?")
    if served.digest == previous.digest:
        lines.append("the sampler still serves the previous weights: the published adapter did not change")
    ratio = passed.metrics.get("ratio", 1.0)
    if abs(ratio - 1) > RATIO_TOLERANCE[dtype]:
        lines.append(
            f"the importance ratio is {ratio:.3f} before any update, not 1: "
            "sampler and trainer disagree on temperature, tokens or weights"
        )
    return lines


def group_warnings(metrics: Mapping[str, float], quiet_steps: int) -> list[str]:
    """Advice when steps pass without a gradient, or when answers do not fit their limits."""
    lines = []
    if quiet_steps and quiet_steps % 3 == 0:
        lines.append(
            f"{quiet_steps} steps in a row had no informative group, so nothing was learned: "
            "mix in easier levels, or raise rollouts.group_size"
        )
    if metrics.get("truncated", 0.0) > 0.9 and metrics.get("informative", 0.0) == 0:
        lines.append("nearly every rollout was cut by a limit: raise rollouts.limits.turn_tokens or the agent's turns")
    if metrics.get("untrainable_tokens", 0.0) > 0:
        lines.append(f"{metrics['untrainable_tokens']:.0f} sampled tokens came without logprobs and cannot train")
    return lines
