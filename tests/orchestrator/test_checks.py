from __future__ import annotations

from sortie.core.policy import PolicyVersion
from sortie.orchestrator.checks import group_warnings, step_warnings
from sortie.training.batching import Batch
from sortie.training.client import OptimOutput, StepOutput

OLD, NEW = PolicyVersion("p", 1, "aa"), PolicyVersion("p", 2, "bb")


def warnings(ratio: float = 1.0, moved: float = 0.1, served: PolicyVersion = NEW, tokens: int = 5) -> list[str]:
    passed = StepOutput(loss=0.0, logprobs=[], metrics={"ratio": ratio})
    optim = OptimOutput(step=1, grad_norm=1.0, update_norm=moved)
    return step_warnings(Batch([], tokens, 1), passed, optim, served, OLD, "float32")


def test_a_sound_step_says_nothing() -> None:
    assert warnings() == []


def test_each_broken_promise_is_one_line_with_its_cause() -> None:
    """Pain A14, H1, I1, I2."""
    assert "disagree on temperature" in warnings(ratio=1.2)[0]
    assert "moved no weight" in warnings(moved=0.0)[0]
    assert "still serves the previous weights" in warnings(served=OLD)[0]
    assert "no trainable token" in warnings(tokens=0)[0]


def test_advice_when_nothing_can_be_learned() -> None:
    """Pain B7, A4."""
    assert "no informative group" in group_warnings({}, quiet_steps=3)[0]
    assert group_warnings({}, quiet_steps=2) == []
    assert "cut by a limit" in group_warnings({"truncated": 1.0, "informative": 0.0}, 0)[0]
    assert "without logprobs" in group_warnings({"untrainable_tokens": 7.0}, 0)[0]
