"""Environments with procedural tasks in levels: their options, and how the catalog describes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import Field, field_validator

from sortie.core.config import Config
from sortie.core.errors import ConfigError
from sortie.core.task import Split
from sortie.envs.env import Env
from sortie.envs.taskset import Grade, GradedTasks


class GradedConfig(Config):
    """Options of an environment with levels."""

    levels: tuple[int, ...] = Field((1, 2, 3), min_length=1)
    """Levels to draw tasks from, the easiest being 1."""
    tasks_per_level: int = Field(500, ge=1, le=4000)
    """Tasks to train on, per level."""
    heldout_per_level: int = Field(100, ge=1, le=800)
    """Tasks held out, per level."""
    seed: int = 0
    """Another seed, other tasks; which split a task belongs to stays the same."""
    examples: bool = True
    """Whether worked examples stand before every task; a model that knows the form of the work needs none."""

    @field_validator("levels")
    @classmethod
    def check_levels(cls, levels: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(levels)) < len(levels):
            raise ValueError("a level is listed twice")
        return levels

    def tasks(self, env: str, grades: Mapping[int, Grade], split: Split) -> GradedTasks:
        """The chosen levels' tasks of one split."""
        per_level = self.tasks_per_level if split == "train" else self.heldout_per_level
        return GradedTasks(env, self.chosen(env, grades), split, per_level=per_level, seed=self.seed)

    def chosen(self, env: str, grades: Mapping[int, Grade]) -> dict[int, Grade]:
        """The grades of the chosen levels.

        Raises: ConfigError naming the levels there are.
        """
        wrong = [level for level in self.levels if level not in grades]
        if wrong:
            raise ConfigError(f"environment {env!r} has no level {wrong[0]}; levels: {', '.join(map(str, grades))}")
        return {level: grades[level] for level in self.levels}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One shipped environment."""

    name: str
    description: str
    grades: Mapping[int, Grade]
    config: type[GradedConfig]
    build: Callable[[GradedConfig], Env]
