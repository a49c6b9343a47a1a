"""Each command does what its help says, on a run of a tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import click
import numpy as np
import pytest
from command import Command
from safetensors.numpy import load_file

from sortie.cli.main import cli
from sortie.core.run_folder import RunFolder
from sortie.models.export import peft_name


def commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    out = []
    for name, command in group.commands.items():
        out += commands(command, (*path, name)) if isinstance(command, click.Group) else [(*path, name)]
    return out


@pytest.mark.parametrize("path", commands(cli), ids=" ".join)
def test_every_help_teaches_with_an_example(sortie: Command, path: tuple[str, ...]) -> None:
    code, out, _ = sortie(*path, "--help")
    assert code == 0
    assert f"  sortie {' '.join(path)}" in out.split("Example", 1)[1]


@pytest.mark.parametrize("path", [path for path in commands(cli) if path != ("chat",)], ids=" ".join)
def test_every_result_can_be_had_as_json(sortie: Command, path: tuple[str, ...]) -> None:
    assert "--json" in sortie(*path, "--help")[1]


def test_train_leaves_a_whole_run_folder(at_work: Path) -> None:
    names = {path.name for path in (at_work / "runs" / "first").iterdir()} - {".lock"}
    assert names == {
        "config.toml",
        "summary.json",
        "metrics.jsonl",
        "groups.jsonl",
        "events.jsonl",
        "rollouts",
        "checkpoints",
        "learning_curve.png",
    }


def test_the_summary_holds_scores_before_and_after(at_work: Path) -> None:
    summary = json.loads((at_work / "runs" / "first" / "summary.json").read_text())
    for when in ("before", "after"):
        assert set(summary[when]) == {"echo", "pooled"}
        assert set(summary[when]["pooled"]) == {"mean", "low", "high", "n"}
        assert summary[when]["pooled"]["n"] == 4
    assert summary["wall_s"] > 0
    assert summary["model"] == "./tiny"
    assert {"python", "torch", "sortie-rl"} <= set(summary["versions"])


def test_every_rollout_of_the_run_is_on_record(at_work: Path) -> None:
    run = RunFolder.open("first")
    phases = [(record.phase, record.step) for record in run.trajectories()]
    assert [phases.count(kind) for kind in (("before", 0), ("train", 1), ("train", 2), ("after", 2))] == [4, 4, 4, 4]
    assert all(record.trajectory.rows() for record in run.trajectories())


def test_dry_run_prints_settings_that_load_again_and_starts_nothing(sortie: Command, at_work: Path) -> None:
    from sortie.core.config import load
    from sortie.orchestrator.config import RunConfig

    code, out, _ = sortie("train", "run.toml", "--set", "optim.lr=1e-5", "--dry-run")
    assert code == 0
    assert "memory about" in out
    (at_work / "again.toml").write_text(out)
    assert load(RunConfig, at_work / "again.toml") == load(RunConfig, at_work / "run.toml", ["optim.lr=1e-5"])
    assert [path.name for path in (at_work / "runs").iterdir()] == ["first"]


def test_train_with_json_prints_the_summary_alone(sortie: Command, at_work: Path, tmp_path: Path) -> None:
    code, out, err = sortie("train", "run.toml", "--runs", tmp_path, "--json", "--set", "steps=1")
    assert code == 0
    assert json.loads(out)["steps"] == 1
    assert "step 1/1" in err


def test_runs_list_and_show(sortie: Command, at_work: Path) -> None:
    (row,) = json.loads(sortie("runs", "list", "--json")[1])
    assert (row["name"], row["status"], row["steps"], row["model"]) == ("first", "finished", 2, "./tiny")
    assert "first" in sortie("runs", "list")[1]
    _, out, _ = sortie("runs", "show", "first")
    assert out.startswith("first: ./tiny, finished after 2 steps")
    assert "after training, on held-out tasks:" in out
    shown = json.loads(sortie("runs", "show", "first", "--json")[1])
    assert shown["summary"]["steps"] == shown["last_step"]["step"] == 2


def test_no_runs_yet_says_how_to_start_one(sortie: Command, tmp_path: Path) -> None:
    assert "start one with `sortie train RUN.toml`" in sortie("runs", "list", "--runs", tmp_path)[1]


def test_eval_says_when_the_clock_cut_its_rollouts(sortie: Command, at_work: Path) -> None:
    code, out, error = sortie("eval", "cli_world:env", "--run", "first", "--tasks", "3", "--seconds", "1e-6", "--json")
    assert code == 0, error
    assert "3 of 3 rollouts ran out of time (1e-06 s)" in error
    assert "raise --seconds, or lower --max-concurrent" in error
    assert json.loads(out)["echo"]["n"] == 3
    assert "ran out of time" not in sortie("eval", "cli_world:env", "--run", "first", "--tasks", "3")[2]


def test_eval_of_a_run_gives_the_scores_of_its_adapter(sortie: Command, at_work: Path) -> None:
    code, out, _ = sortie("eval", "cli_world:env", "--run", "first", "--tasks", "3", "--json")
    assert code == 0
    assert json.loads(out)["echo"]["n"] == 3
    _, table, _ = sortie("eval", "cli_world:env", "--run", "first", "--tasks", "3", "--no-tools")
    assert table.splitlines()[0].split() == ["environment", "success", "95%", "interval", "n"]


def test_rollout_shows_every_token_and_why_it_ended(sortie: Command, at_work: Path) -> None:
    code, out, _ = sortie("rollout", "cli_world:env", "--model", "./tiny", "--show")
    assert code == 0
    assert "--- prompt (" in out
    assert "<|im_start|>user\nsay " in out
    assert "--- turn 1 (" in out
    assert "\nended    " in out
    assert "\nreward   " in out


def test_rollout_with_another_seed_draws_another_rollout(sortie: Command, at_work: Path) -> None:
    def tokens(seed: int) -> object:
        _, out, _ = sortie("rollout", "cli_world:env", "--model", "./tiny", "--json", "--seed", str(seed))
        return json.loads(out)["tokens"]

    assert tokens(0) == tokens(0)
    assert tokens(0) != tokens(1)


@pytest.mark.parametrize("env", ["arithmetic", "inventory", "cli_world:env"])
def test_the_oracle_speaks_without_a_model(sortie: Command, at_work: Path, env: str) -> None:
    code, out, _ = sortie("rollout", env, "--oracle")
    assert code == 0
    assert out.startswith("ended    answered")


def test_export_writes_the_last_checkpoint_as_peft_and_as_merged_weights(
    sortie: Command, at_work: Path, tmp_path: Path
) -> None:
    for form in ("peft", "merged"):
        code, out, _ = sortie("export", "first", "--format", form, "--out", tmp_path / form)
        assert (code, out.strip()) == (0, str(tmp_path / form))
    trained = load_file(at_work / "runs" / "first" / "checkpoints" / "step-2" / "adapter.safetensors")
    adapter = load_file(tmp_path / "peft" / "adapter_model.safetensors")
    assert {peft_name(name) for name in trained} == set(adapter)
    assert all((adapter[peft_name(name)] == tensor).all() for name, tensor in trained.items())
    name = "layers.1.mlp.up_proj"
    base = load_file(at_work / "tiny" / "model.safetensors")[f"model.{name}.weight"]
    merged = load_file(tmp_path / "merged" / "model.safetensors")[f"model.{name}.weight"]
    alpha_over_rank = 32 / 2
    assert np.allclose(merged, base + alpha_over_rank * trained[f"{name}.B"] @ trained[f"{name}.A"], atol=1e-6)
    assert not (merged == base).all()


def test_export_never_overwrites(sortie: Command, at_work: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    code, _, err = sortie("export", "first", "--out", tmp_path)
    assert code == 2
    assert "export to a new folder" in err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_chat_answers_until_ctrl_d(sortie: Command, at_work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter(["hello", "again"])

    def ask(prompt: str) -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", ask)
    code, out, _ = sortie("chat", "first", "--env", "cli_world:env")
    assert code == 0
    assert out.startswith("first with the tools of echo: shout")
    assert out.count("agent> ") == 2


def test_env_and_model_list_what_there_is(sortie: Command) -> None:
    assert {info["name"] for info in json.loads(sortie("env", "list", "--json")[1])} >= {"arithmetic", "inventory"}
    assert "calculator(expression: string)" in sortie("env", "list")[1]
    assert json.loads(sortie("model", "list", "--json")[1])[0]["name"] == "smollm2-135m"
    assert "smollm2-135m" in sortie("model", "list")[1]


def test_model_show_and_get_of_a_folder(sortie: Command, at_work: Path) -> None:
    assert json.loads(sortie("model", "show", "./tiny", "--json")[1])["family"] == "llama"
    assert "hidden size" in sortie("model", "show", "./tiny")[1]
    assert sortie("model", "get", "./tiny")[1].strip().endswith("tiny")
