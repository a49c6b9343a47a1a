from __future__ import annotations

from pathlib import Path

import pytest
from small_run import config, env

import sortie
from sortie.core.errors import ConfigError


def settings(model: Path) -> dict[str, object]:
    c = config(model, steps=1).model_dump(include={"model", "steps", "lora", "rollouts", "engine", "eval"})
    return dict(c)


def test_train_takes_an_environment_and_returns_the_summary(model: Path, tmp_path: Path) -> None:
    said: list[str] = []
    summary = sortie.train(env(), runs=tmp_path, say=said.append, optim__lr=0.01, **settings(model))
    assert summary.after["letters"].n == 4
    assert any(line.startswith("step 1/1") for line in said)


async def test_train_works_inside_a_running_loop(model: Path, tmp_path: Path) -> None:
    """As in a notebook cell, where a loop already runs."""
    summary = sortie.train(env(), runs=tmp_path, say=lambda _: None, **settings(model))
    assert (summary.path / "summary.json").exists()


def test_an_unknown_setting_is_named(tmp_path: Path) -> None:
    """Pain K1."""
    with pytest.raises(ConfigError, match=r"unknown option 'optim\.learning_rate'"):
        sortie.train(env(), runs=tmp_path, optim__learning_rate=1.0)


def test_settings_change_a_run_file(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(config(model).to_toml().replace('name = "letters"', 'name = "arithmetic"'))
    with pytest.raises(ConfigError, match=r"rollouts\.group_size"):
        sortie.train(file, rollouts__group_size=1)
