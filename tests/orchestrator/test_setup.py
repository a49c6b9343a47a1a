from __future__ import annotations

from pathlib import Path

import pytest
from small_run import config, env

from sortie.core.errors import ConfigError, SortieError
from sortie.envs import Env
from sortie.orchestrator.setup import build_envs, check, preview


def test_what_cannot_work_is_found_before_the_model_is_loaded(model: Path) -> None:
    """Pain K1, C8."""
    bare = Env("letters", tasks=[{"prompt": f"{i}"} for i in range(20)])
    faults: list[tuple[dict[str, object], Env, str]] = [
        ({"scheduler": {"name": "envshed"}}, env(), "did you mean 'envsched'"),
        ({"scheduler": {"name": "uniform", "speed": 2}}, env(), "speed"),
        ({}, bare, "has no reward"),
        ({}, Env("letters", tasks=[{"prompt": "x"}], rewards=env().rubric, heldout=0.0), "no held-out task"),
        ({"rollouts": {"limits": {"turn_tokens": 9, "window": 9}}}, env(), "turn_tokens must be below"),
    ]
    for changes, environment, message in faults:
        with pytest.raises(SortieError, match=message):
            check(config(model, **changes), [environment])


def test_environment_tables_are_checked_by_their_environment(model: Path) -> None:
    """Pain K1."""
    with pytest.raises(ConfigError, match="levls"):
        build_envs(config(model, env=[{"name": "arithmetic", "levls": [1]}]))


def test_the_preview_names_tasks_memory_and_time(model: Path) -> None:
    text = "\n".join(preview(config(model), [env()]))
    assert "2 steps of 2 groups x 6 rollouts on letters" in text
    assert "memory about" in text
    assert "time about" in text
