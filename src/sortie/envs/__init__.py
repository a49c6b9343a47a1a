"""Environments: tasks, tools and rewards of one domain."""

from sortie.envs.env import Env, Hostile, Oracle, Setup
from sortie.envs.registry import EnvInfo, build, catalog_info, levels_of
from sortie.envs.rows import TaskSource
from sortie.envs.taskset import TaskList

__all__ = [
    "Env",
    "EnvInfo",
    "Hostile",
    "Oracle",
    "Setup",
    "TaskList",
    "TaskSource",
    "build",
    "catalog_info",
    "levels_of",
]
