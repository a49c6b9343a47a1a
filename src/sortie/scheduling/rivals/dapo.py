"""DAPO's dynamic sampling (arXiv 2503.14476, section 3.2): drop groups without variance, and refill the batch.

Tasks come in epochs of random order. The paper samples until the batch is full of groups whose accuracy is neither 0
nor 1; its published recipe gives up after ten generation batches. Here replacements are asked for by `refill` verdicts,
so their rollouts are counted where they are made, and a batch costs at most `most` times its size (ours). For graded
rewards a group is dropped if all its rewards are equal; one that was abandoned or has fewer than two rewards is
replaced too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import Field

from sortie.core.config import Config
from sortie.core.group import Verdict
from sortie.scheduling.rivals.base import Shown
from sortie.scheduling.rivals.refill import Refill
from sortie.scheduling.rivals.tasks import Ints
from sortie.scheduling.rivals.turns import TurnRival


class DapoConfig(Config):
    """Options of DAPO's dynamic sampling."""

    most: float = Field(5.0, ge=1)
    """Rollouts a batch may cost, replacements included, as a multiple of its size; 1 replaces nothing."""


D = TypeVar("D", bound=DapoConfig)


class DynamicSampling(TurnRival[D]):
    """Replaces groups without variance."""

    def _begin(self) -> None:
        self._refill = Refill(self._config.most)

    def _choose(self, groups: int) -> Ints:
        self._refill.open(groups)
        return self._in_turn(groups)

    def _verdict(self, group: Shown) -> Verdict:
        return "keep" if group.differs or not self._refill.grant() else "refill"

    def state_dict(self) -> dict[str, Any]:
        """JSON values. Records are not in it: build with the run's current tasks, then load."""
        return {**super().state_dict(), "refill": self._refill.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a saved run; tasks it did not know join its epoch."""
        super().load_state_dict(state)
        self._refill.load_state_dict(state["refill"])


class Dapo(DynamicSampling[DapoConfig]):
    """Uniform choice that pays for full batches with replacements."""

    Config = DapoConfig
