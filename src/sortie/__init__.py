"""Sortie trains LLM agents by reinforcement learning.

The names below load on first use, so `import sortie` stays instant and needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sortie.agents.agent import Agent
    from sortie.agents.react import ReAct
    from sortie.agents.reward import Reward, reward
    from sortie.agents.rubric import Rubric
    from sortie.agents.tool import Tool, tool
    from sortie.context.limits import LimitReached, Limits
    from sortie.context.run_context import Done, RunContext
    from sortie.core.errors import SortieError
    from sortie.core.messages import Message, ToolCall, assistant, system, tool_result, user
    from sortie.core.run_folder import RunFolder
    from sortie.core.task import Task
    from sortie.core.trajectory import StopReason, Trajectory
    from sortie.envs.env import Env
    from sortie.inference.client import SamplingClient
    from sortie.inference.scripted import ScriptedClient
    from sortie.orchestrator.api import train
    from sortie.orchestrator.config import RunConfig
    from sortie.orchestrator.evaluate import evaluate
    from sortie.orchestrator.export import export_run
    from sortie.orchestrator.session import open_session
    from sortie.resources.kinds.sandbox.sandbox import Sandbox
    from sortie.resources.kinds.sandbox.spec import SandboxSpec
    from sortie.resources.spec import ObjectSpec, ResourceSpec
    from sortie.rollouts.engine import RolloutEngine
    from sortie.scheduling.scheduler import TaskScheduler
    from sortie.training.client import TrainingClient

__version__: str

__all__ = [
    "Agent",
    "Done",
    "Env",
    "LimitReached",
    "Limits",
    "Message",
    "ObjectSpec",
    "ReAct",
    "ResourceSpec",
    "Reward",
    "RolloutEngine",
    "Rubric",
    "RunConfig",
    "RunContext",
    "RunFolder",
    "SamplingClient",
    "Sandbox",
    "SandboxSpec",
    "ScriptedClient",
    "SortieError",
    "StopReason",
    "Task",
    "TaskScheduler",
    "Tool",
    "ToolCall",
    "TrainingClient",
    "Trajectory",
    "assistant",
    "evaluate",
    "export_run",
    "open_session",
    "reward",
    "system",
    "tool",
    "tool_result",
    "train",
    "user",
]

_HOMES = {
    "agents.agent": ("Agent",),
    "agents.react": ("ReAct",),
    "agents.reward": ("Reward", "reward"),
    "agents.rubric": ("Rubric",),
    "agents.tool": ("Tool", "tool"),
    "context.limits": ("LimitReached", "Limits"),
    "context.run_context": ("Done", "RunContext"),
    "core.errors": ("SortieError",),
    "core.messages": ("Message", "ToolCall", "assistant", "system", "tool_result", "user"),
    "core.run_folder": ("RunFolder",),
    "core.task": ("Task",),
    "core.trajectory": ("StopReason", "Trajectory"),
    "envs.env": ("Env",),
    "inference.client": ("SamplingClient",),
    "inference.scripted": ("ScriptedClient",),
    "orchestrator.api": ("train",),
    "orchestrator.config": ("RunConfig",),
    "orchestrator.evaluate": ("evaluate",),
    "orchestrator.export": ("export_run",),
    "orchestrator.session": ("open_session",),
    "resources.kinds.sandbox.sandbox": ("Sandbox",),
    "resources.kinds.sandbox.spec": ("SandboxSpec",),
    "resources.spec": ("ObjectSpec", "ResourceSpec"),
    "rollouts.engine": ("RolloutEngine",),
    "scheduling.scheduler": ("TaskScheduler",),
    "training.client": ("TrainingClient",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("sortie-rl")
    elif name in _HOME_OF:
        from importlib import import_module

        value = getattr(import_module(f"sortie.{_HOME_OF[name]}"), name)
    else:
        raise AttributeError(f"module 'sortie' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
