"""What a run came to: the content of summary.json."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from sortie.core.policy import PolicyVersion
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.evaluate import POOLED, Score

_PACKAGES = ("sortie-rl", "torch", "transformers", "numpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Held-out success before and after, and what produced it."""

    path: Path
    """The run folder."""
    model: str
    steps: int
    seed: int
    scheduler: str
    before: dict[str, Score] | None
    """By environment, and "pooled"; None if the untrained model was not evaluated."""
    after: dict[str, Score]
    wall_s: float
    """Evaluations and training, without loading the model."""
    policy: PolicyVersion
    """The last published policy."""

    @classmethod
    def of(
        cls,
        path: Path,
        config: RunConfig,
        before: dict[str, Score] | None,
        after: dict[str, Score],
        wall_s: float,
        policy: PolicyVersion,
    ) -> Self:
        """Gather a finished run."""
        return cls(
            path=path,
            model=config.model,
            steps=config.steps,
            seed=config.seed,
            scheduler=config.scheduler.name,
            before=before,
            after=after,
            wall_s=wall_s,
            policy=policy,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "model": self.model,
            "steps": self.steps,
            "seed": self.seed,
            "scheduler": self.scheduler,
            "before": None if self.before is None else {name: s.to_dict() for name, s in self.before.items()},
            "after": {name: s.to_dict() for name, s in self.after.items()},
            "wall_s": round(self.wall_s, 2),
            "policy": {"version": self.policy.number, "digest": self.policy.digest},
            "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
        }

    def lines(self) -> list[str]:
        """One phrase per environment, the pooled one last."""
        names = [*(n for n in self.after if n != POOLED), POOLED]
        return [f"{name} {self._from(name)}{self.after[name].mean:.3f}" for name in names]

    def _from(self, name: str) -> str:
        return "" if self.before is None else f"{self.before[name].mean:.3f} -> "
