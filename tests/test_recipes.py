"""Every recipe says what it does, loads, and trains two steps of a tiny model."""

from __future__ import annotations

import runpy
import sys
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


def test_the_model_tiny_is_made_the_same_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run.toml"
    run.write_text('[[env]]\nname = "arithmetic"\nexamples = false\n[[env]]\nname = "guess"\n')
    monkeypatch.syspath_prepend(ROOT / "tiny")
    for out in ("one", "two"):
        options = ["--run", str(run), "--steps", "2", "--per-level", "4", "--out", str(tmp_path / out)]
        monkeypatch.setattr(sys, "argv", ["make.py", *options])
        runpy.run_path(str(ROOT / "tiny" / "make.py"), run_name="__main__")
    files = [{path.name: path.read_bytes() for path in (tmp_path / out).iterdir()} for out in ("one", "two")]
    assert sorted(files[0]) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert files[0] == files[1]
