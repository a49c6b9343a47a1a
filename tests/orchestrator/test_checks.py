from __future__ import annotations

from sortie.core.group import Assignment, Group
from sortie.core.policy import PolicyVersion
from sortie.core.trajectory import Trajectory
from sortie.orchestrator.checks import (
    ZERO_STEPS,
    group_warnings,
    probe_warnings,
    rewarded,
    served_warnings,
    step_warnings,
    zero_warnings,
)
from sortie.orchestrator.probe import Probe
from sortie.training.batching import Batch
from sortie.training.client import OptimOutput, StepOutput

OLD, NEW = PolicyVersion("p", 1, "aa"), PolicyVersion("p", 2, "bb")


def warnings(
    ratio: float = 1.0,
    moved: float = 0.1,
    served: PolicyVersion = NEW,
    tokens: int = 5,
    worst: float = 1e-5,
    dtype: str = "float32",
) -> list[str]:
    passed = StepOutput(loss=0.0, logprobs=[], metrics={"ratio": ratio, "mismatch_max": worst})
    optim = OptimOutput(step=1, grad_norm=1.0, update_norm=moved)
    return step_warnings(Batch([], tokens, 1), passed, optim, served, OLD, dtype)


def test_a_sound_step_says_nothing() -> None:
    assert warnings() == []


def test_each_broken_promise_is_one_line_with_its_cause() -> None:
    """Pain A14, H1, I1, I2."""
    assert "disagree on temperature" in warnings(ratio=1.2)[0]
    assert "moved no weight" in warnings(moved=0.0)[0]
    assert "still serves the previous weights" in warnings(served=OLD)[0]
    assert "no trainable token" in warnings(tokens=0)[0]


def test_a_few_wrong_tokens_show_although_the_mean_ratio_is_1() -> None:
    """Pain A14."""
    assert "differs by 0.5 between sampler and trainer" in warnings(worst=0.5)[0]
    assert warnings(worst=0.5, dtype="bfloat16") == []
    assert "differs by 3" in warnings(worst=3.0, dtype="bfloat16")[0]


def test_advice_when_nothing_can_be_learned() -> None:
    """Pain B7, A4."""
    assert "no informative group" in group_warnings({}, quiet_steps=3)[0]
    assert group_warnings({}, quiet_steps=2) == []
    assert "cut by a limit" in group_warnings({"truncated": 1.0, "informative": 0.0}, 0)[0]
    assert "without logprobs" in group_warnings({"untrainable_tokens": 7.0}, 0)[0]


def group(*versions: PolicyVersion | None, reward: float | None = 0.0) -> Group:
    members = []
    for version in versions:
        member = Trajectory(id="e/1@0.0", task_key="e/1", env="e", reward=reward)
        member.add("sampled", [1], None, logprobs=[-1.0], version=version)
        members.append(member)
    return Group(Assignment(0, "e/1", len(members)), members)


def test_turns_of_another_policy_are_counted_and_it_is_named() -> None:
    """Pain I1, J11."""
    assert served_warnings([group(NEW, NEW), group(NEW)], NEW) == []
    (line,) = served_warnings([group(NEW, OLD), group(OLD)], NEW)
    assert line.startswith("2 of 3 turns were drawn by p@1 (aa) instead of p@2 (bb)")
    assert "the base model" in served_warnings([group(None)], NEW)[0]


def test_a_gap_between_engine_and_plain_pass_is_said_with_its_size() -> None:
    """Pain I2."""
    assert probe_warnings(Probe((-1.0, -2.0), (-1.0005, -2.0)), "float32") == []
    assert "up to 0.2 from" in probe_warnings(Probe((-1.0, -2.0), (-1.0, -2.2)), "float32")[0]
    assert probe_warnings(Probe((-1.0,), (-1.2,)), "bfloat16") == []


def test_steps_without_any_reward_are_counted_and_said_every_so_often() -> None:
    """Pain B7."""
    assert not rewarded([group(NEW), group(NEW, reward=None)])
    assert rewarded([group(NEW), group(NEW, reward=0.1)])
    assert [steps for steps in range(12) if zero_warnings(steps)] == [ZERO_STEPS, 2 * ZERO_STEPS]
