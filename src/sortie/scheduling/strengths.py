"""The strengths of the relations, and how they are found: pattern search on the log marginal likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from pydantic import Field

from sortie.core.config import Config


class Strengths(Config):
    """Hyper-parameters of the model. Standard deviations are in logits of success."""

    level: float = Field(3.0, gt=0)
    """Level common to all pairs. Not fitted: there is only one level to fit it by."""
    family: float = Field(0.5, gt=0)
    """What environments with like tools and descriptions share."""
    environment: float = Field(1.5, gt=0)
    """What is one environment's own."""
    hint: float = Field(1.5, gt=0)
    """What is known of a task before its first rollout: given features, or text."""
    pattern: float = Field(0.7, gt=0)
    """How its rollouts behaved."""
    cell: float = Field(0.5, gt=0)
    """One hint inside one environment: what neither explains alone."""
    pair: float = Field(1.0, gt=0)
    """What is left to the single task."""
    learning: float = Field(0.02, gt=0)
    """Logits gained per unit of squared advantage trained on in a pair's environment, hint, pattern, or anywhere."""
    forget: float = Field(0.01, ge=1e-4, le=0.5)
    """Precision that a result loses per policy version: what the learner's changes leave unexplained."""
    similarity: float = Field(0.2, ge=0.01, le=0.95)
    """Share of the hints' and patterns' effects that follows their likeness."""


FITTED: Mapping[str, float] = {
    "family": 0.7,
    "environment": 0.7,
    "hint": 0.7,
    "pattern": 0.7,
    "cell": 0.7,
    "pair": 0.5,
    "learning": 1.5,
    "forget": 1.0,
    "similarity": 1.0,
}
"""What is fitted, with the standard deviation of the normal prior of its logarithm around the value it starts from."""
_FIRST_STEP, _SMALLEST, _LARGEST = 0.4, 0.05, 1.0


class Tuner:
    """Maximises log evidence + log prior over the logarithms of the strengths, a few trials at a time.

    Coordinate pattern search (Hooke & Jeeves 1961): a step that helps is kept and grows by half; one that does not is
    undone, halved and turned round. The evidence moves as results arrive, and the search follows it for ever.
    """

    def __init__(self, start: Strengths) -> None:
        self.strengths = start
        """As fitted so far."""
        self._start = start
        self._turn = 0
        self._steps = dict.fromkeys(FITTED, _FIRST_STEP)

    def improve(self, evidence: Callable[[Strengths], float], trials: int) -> bool:
        """Try `trials` strengths, one after the other; True if something changed."""
        if not trials:
            return False
        best, changed = evidence(self.strengths) + self._log_prior(self.strengths), False
        for _ in range(trials):
            name = list(FITTED)[self._turn % len(FITTED)]
            self._turn += 1
            trial = self._moved(name)
            value = evidence(trial) + self._log_prior(trial) if trial else -np.inf
            if value > best:
                assert trial is not None
                self.strengths, best, changed = trial, value, True
                self._steps[name] = float(np.clip(1.5 * self._steps[name], -_LARGEST, _LARGEST))
            else:
                step = -0.5 * self._steps[name]
                self._steps[name] = step if abs(step) >= _SMALLEST else float(np.copysign(_SMALLEST, step))
        return changed

    def _moved(self, name: str) -> Strengths | None:
        """The strengths with one of them moved; None at a bound."""
        value = getattr(self.strengths, name) * float(np.exp(self._steps[name]))
        low, high = {"forget": (1e-4, 0.5), "similarity": (0.01, 0.95)}.get(name, (1e-4, 20.0))
        value = min(max(value, low), high)
        return None if value == getattr(self.strengths, name) else self.strengths.model_copy(update={name: value})

    def _log_prior(self, strengths: Strengths) -> float:
        distance = [np.log(getattr(strengths, name) / getattr(self._start, name)) / sd for name, sd in FITTED.items()]
        return float(-0.5 * np.square(distance).sum())

    def state_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"strengths": self.strengths.model_dump(), "turn": self._turn, "steps": dict(self._steps)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a saved search."""
        self.strengths = Strengths(**state["strengths"])
        self._turn, self._steps = int(state["turn"]), {name: float(step) for name, step in state["steps"].items()}
