"""What the tests of the orchestrator train: a tiny model on environments whose reward it can move."""

from __future__ import annotations

from pathlib import Path

import sortie
from sortie.core.trajectory import Trajectory
from sortie.envs import Env
from sortie.orchestrator.config import RunConfig


@sortie.reward(inline=True)
def capitals(trajectory: Trajectory) -> float:
    """Share of sampled tokens that are one of the 26 capital letters, 10% for a random model."""
    sampled = [t for node in trajectory.nodes if node.kind == "sampled" for t in node.token_ids]
    return sum(32 <= t < 58 for t in sampled) / max(len(sampled), 1)


@sortie.reward(inline=True)
def always_one() -> float:
    return 1.0


@sortie.reward(inline=True)
def broken() -> float:
    return float("nan")


def env(*rewards: object, name: str = "letters", tasks: int = 20) -> Env:
    return Env(name, tasks=[{"prompt": f"go {i}"} for i in range(tasks)], rewards=rewards or [capitals])  # type: ignore[arg-type]


def config(model: Path, **changes: object) -> RunConfig:
    settings: dict[str, object] = {
        "model": str(model),
        "steps": 2,
        "lora": {"rank": 4},
        "optim": {"lr": 0.02},
        "rollouts": {"groups": 2, "group_size": 6, "limits": {"turn_tokens": 12, "rollout_tokens": 12}},
        "engine": {"kv_memory_mb": 16},
        "eval": {"tasks": 4},
        "env": [{"name": "letters"}],
    }
    return RunConfig.model_validate({**settings, **changes})
