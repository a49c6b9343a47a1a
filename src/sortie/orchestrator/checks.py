"""Each step proves that it did something; what it cannot prove, it says loudly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sortie.context.limits import Limits
from sortie.core.group import Group
from sortie.core.policy import PolicyVersion
from sortie.orchestrator.probe import Probe
from sortie.training.batching import Batch
from sortie.training.client import OptimOutput, StepOutput

RATIO_TOLERANCE = {"float32": 0.01, "bfloat16": 0.1}
"""How far the mean importance ratio may be from 1 at lag 0, by dtype of the base model."""
MISMATCH_TOLERANCE = {"float32": 0.01, "bfloat16": 2.0}
"""How far any one token's log-probability may be between sampler and trainer: a mean ratio hides a few wrong tokens.
Rounding alone came to 0.5 in four steps of the quickstart in bfloat16."""
PROBE_TOLERANCE = {"float32": 1e-3, "bfloat16": 0.3}
"""How far a log-probability of the engine may be from a plain pass's, by dtype of the base model."""
LATE_SHARE = 0.02
"""Share of rollouts that may run out of time without a word: a tool hangs now and then."""
ZERO_STEPS = 5
"""Steps in a row without any reward above 0 after which the run is told so, and again after as many more."""


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
    elif (worst := passed.metrics.get("mismatch_max", 0.0)) > MISMATCH_TOLERANCE[dtype]:
        lines.append(
            f"a token's log-probability differs by {worst:.2g} between sampler and trainer: a few positions see other "
            "tokens or masks than they were drawn with"
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


IN_RUN_FILE = "raise rollouts.limits.seconds, or lower rollouts.max_concurrent"


def time_warnings(late: int, total: int, limits: Limits, remedy: str = IN_RUN_FILE) -> list[str]:
    """Whether the clock cut more than the odd rollout: scores then say more of the machine than of the policy."""
    if late <= LATE_SHARE * total:
        return []
    return [
        f"{late} of {total} rollouts ran out of time ({limits.seconds:g} s) and are scored as they stood: "
        f"is the machine busy? {remedy}"
    ]


def served_warnings(groups: Sequence[Group], pinned: PolicyVersion) -> list[str]:
    """Whether every turn of the step was drawn by the policy that its rollouts were pinned to."""
    turns = [n for group in groups for t in group.trajectories for n in t.nodes if n.kind == "sampled"]
    other = [n.version for n in turns if n.version is None or n.version.digest != pinned.digest]
    if not other:
        return []
    named = "the base model" if other[0] is None else f"{other[0]} ({other[0].digest})"
    return [
        f"{len(other)} of {len(turns)} turns were drawn by {named} instead of {pinned} ({pinned.digest}): "
        "the sampler did not take up the published adapter"
    ]


def probe_warnings(probe: Probe, dtype: str) -> list[str]:
    """Whether engine and plain pass agree on the probe (see `orchestrator.probe`)."""
    if probe.gap <= PROBE_TOLERANCE[dtype]:
        return []
    return [
        f"the engine's log-probabilities are up to {probe.gap:.2g} from a plain pass over the published weights: "
        "it serves other weights, or KV kept from an earlier policy"
    ]


def rewarded(groups: Sequence[Group]) -> bool:
    """Whether any rollout of the step had a reward above 0."""
    return any(reward > 0 for group in groups for reward in group.rewards)


def zero_warnings(zero_steps: int) -> list[str]:
    """Advice after `zero_steps` steps in a row in which nothing was `rewarded`."""
    if zero_steps == 0 or zero_steps % ZERO_STEPS:
        return []
    return [
        f"no rollout of the last {zero_steps} steps had a reward above 0: read one with "
        "`sortie runs show RUN --rollout ID`; the tasks may be too hard to begin with, or the reward wrong"
    ]
