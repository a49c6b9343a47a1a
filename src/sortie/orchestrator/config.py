"""The run file: every setting of one training run, with its default.

Sections are the configurations of the classes they build, so a section's docstrings are that class's.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sortie.context.limits import Limits
from sortie.core.config import Config
from sortie.core.policy import LoraConfig
from sortie.inference.embedded.config import EngineConfig
from sortie.training.client import AdamParams
from sortie.training.config import LossConfig, TrainerConfig


class Options(Config):
    """A name and the options of what it names, checked by that thing's own configuration at load."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    """What to build; for environments also `module:attribute`."""

    @property
    def options(self) -> dict[str, Any]:
        """Everything but the name."""
        return dict(self.__pydantic_extra__ or {})


class RolloutConfig(Config):
    """How many rollouts a step takes, and how they are drawn."""

    groups: int = Field(6, ge=1)
    """Tasks per step."""
    group_size: int = Field(8, ge=2)
    """Rollouts per task; advantages compare siblings, so at least 2."""
    temperature: float = Field(1.0, gt=0)
    """Divides the logits. 0 is refused: a greedy policy has no gradient."""
    max_concurrent: int = Field(64, ge=1)
    """Rollouts in flight at once."""
    limits: Limits = Field(default_factory=Limits)
    """Tokens and seconds a rollout may use."""


class EvalConfig(Config):
    """Held-out evaluation, before and after training and every so many steps."""

    tasks: int = Field(100, ge=1)
    """Held-out tasks per environment, one rollout each."""
    every: int | None = Field(None, ge=1)
    """Evaluate after every so many steps as well; None: only before and after."""
    before: bool = True
    """Whether to measure the untrained model; without it the summary has no `before`."""
    temperature: float = Field(1.0, ge=0)
    """0 is greedy."""


class RunConfig(Config):
    """One training run."""

    model: str = "smollm2-135m"
    """A name from `sortie model list`, a folder in Hugging Face layout, or a hub id."""
    steps: int = Field(16, ge=1)
    """Optimiser steps; a step without an informative group counts but moves nothing."""
    seed: int = 0
    """Key of all randomness of the run."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of the base weights; adapters are always trained in float32."""
    device: str = "cpu"
    """Where the model runs, as torch names it."""
    threads: int | None = Field(None, ge=1)
    """Threads torch may use; None: one per core."""
    renderer: str = "auto"
    """How messages become tokens; `auto` picks by the model's family."""
    lora: LoraConfig = Field(default_factory=LoraConfig)
    rollouts: RolloutConfig = Field(default_factory=RolloutConfig)
    scheduler: Options = Field(default_factory=lambda: Options(name="envsched"))
    optim: AdamParams = Field(default_factory=AdamParams)
    loss: LossConfig = Field(default_factory=LossConfig)
    trainer: TrainerConfig = Field(default_factory=TrainerConfig)
    engine: EngineConfig = Field(default_factory=EngineConfig)
    eval: EvalConfig = Field(default_factory=EvalConfig)
    on_canary: Literal["warn", "stop"] = "warn"
    """What to do when a step did not keep its promises: say so, or say so and end the run (it can be resumed)."""
    tracker: Literal["trackio"] | None = None
    """Also log metrics to this tracker (extra `track`)."""
    env: tuple[Options, ...] = Field(min_length=1)
    """The environments, one `[[env]]` table each."""

    @model_validator(mode="after")
    def check_env_names(self) -> Self:
        names = [env.name for env in self.env]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"environment {twice[0]!r} is listed twice; give each one [[env]] table")
        return self
