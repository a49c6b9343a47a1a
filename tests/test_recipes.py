"""Every recipe says what it does, loads, and trains two steps of a tiny model."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.cli.main import main
from sortie.core.config import load
from sortie.core.run_folder import RunFolder
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.setup import build_envs, check
from tiny_folder import make_tiny_folder

ROOT = Path(__file__).parent.parent / "recipes"
RECIPES = sorted(path for path in ROOT.iterdir() if path.is_dir())
SMALL = ("steps=2", "rollouts.groups=2", "rollouts.group_size=2", "rollouts.limits.turn_tokens=4", "eval.tasks=2")


def test_there_is_a_quickstart() -> None:
    assert "quickstart" in [path.name for path in RECIPES]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_loads_and_says_how_it_is_run(recipe: Path) -> None:
    config = load(RunConfig, recipe / "run.toml")
    check(config, build_envs(config))
    assert f"sortie train recipes/{recipe.name}/run.toml" in (recipe / "README.md").read_text()


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_trains_two_steps(recipe: Path, tmp_path: Path) -> None:
    model = make_tiny_folder(tmp_path / "tiny")
    changes = [part for setting in (f"model={model}", *SMALL) for part in ("--set", setting)]
    assert main(["train", str(recipe / "run.toml"), *changes, "--runs", str(tmp_path / "runs"), "--name", "two"]) == 0
    run = RunFolder.open("two", tmp_path / "runs")
    assert run.info().status == "finished"
    assert [line["step"] for line in run.metrics()] == [1, 2]
