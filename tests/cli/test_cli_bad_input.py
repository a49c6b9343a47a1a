"""What a user can get wrong is one clear line on stderr, without a traceback, and nothing is lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from command import Command

from sortie.core.run_folder import RunFolder
from tiny_folder import make_tiny_folder


def refused(result: tuple[int, str, str], code: int = 2) -> str:
    """The one line that a refused command said."""
    found, out, err = result
    assert found == code, err
    assert out == ""
    (line,) = err.splitlines()
    return line.removeprefix("error: ")


def test_an_unknown_command_line_option(sortie: Command) -> None:
    line = refused(sortie("train", "run.toml", "--stes", "a=1"))
    assert line.startswith("No such option '--stes'. Did you mean '--set'?")
    assert line.endswith("(see `sortie train --help`)")


def test_an_unknown_command(sortie: Command) -> None:
    assert refused(sortie("trian")).startswith("No such command 'trian'")


def test_an_unknown_option_in_the_run_file(sortie: Command, at_work: Path) -> None:
    """Pain K1."""
    (at_work / "bad.toml").write_text("stpes = 4\n" + (at_work / "run.toml").read_text())
    assert refused(sortie("train", "bad.toml")) == "bad.toml: unknown option 'stpes': did you mean 'steps'?"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("stpes=4", "unknown option 'stpes'"),
        ("scheduler.name=envsheds", "unknown scheduler 'envsheds'"),
        ("scheduler.nonsense=1", "unknown option 'nonsense'"),
        ("env.0.levels=[1]", "is an Env, which takes no options"),
        ("env.0.name=arithmetik", "unknown environment 'arithmetik': did you mean 'arithmetic'?"),
        ("rollouts.temperature=0", "rollouts.temperature: Input should be greater than 0"),
    ],
)
def test_a_setting_that_is_unknown_ineffective_or_out_of_range(
    sortie: Command, at_work: Path, override: str, message: str
) -> None:
    """Pain K1, H4."""
    runs = sorted((at_work / "runs").iterdir())
    assert message in refused(sortie("train", "run.toml", "--set", override))
    assert sorted((at_work / "runs").iterdir()) == runs


def test_a_run_file_that_is_not_there(sortie: Command) -> None:
    assert refused(sortie("train", "nowhere.toml")) == "cannot read nowhere.toml: No such file or directory"


def test_a_wrong_model_name(sortie: Command, at_work: Path) -> None:
    line = refused(sortie("train", "run.toml", "--set", "model=smollm2-153m"))
    assert line == "unknown model 'smollm2-153m': did you mean 'smollm2-135m'? known: smollm2-135m, tiny"
    assert "unknown model" in refused(sortie("eval", "arithmetic", "--model", "nothing"))
    assert "unknown model" in refused(sortie("model", "show", "nothing"))


def test_a_model_folder_without_tokenizer(sortie: Command, at_work: Path, tmp_path: Path) -> None:
    folder = make_tiny_folder(tmp_path / "model")
    (folder / "tokenizer.json").unlink()
    for command in (("train", "run.toml", "--set", f"model={folder}"), ("eval", "arithmetic", "--model", folder)):
        assert refused(sortie(*command)) == f"{folder} is not a complete model folder: it has no tokenizer.json"


def test_a_missing_extra(sortie: Command, at_work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    real = importlib.import_module

    def without_trackio(name: str, package: str | None = None) -> Any:
        if name == "trackio":
            raise ModuleNotFoundError(name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", without_trackio)
    line = refused(sortie("train", "run.toml", "--set", "tracker=trackio"))
    assert line == "tracker 'trackio' needs an extra that is not installed: pip install 'sortie-rl[track]'"


def test_a_runs_folder_that_cannot_be_written(sortie: Command, at_work: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = sortie("train", "run.toml", "--runs", tmp_path / "file" / "runs")
    assert code == 2
    assert err.startswith("error: cannot write ")
    assert err.endswith("choose another folder with --runs\n")
    assert len(err.splitlines()) == 1


def test_a_disk_that_fills_up_during_a_run_ends_it_in_one_line_and_keeps_what_was_recorded(
    sortie: Command, at_work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, os.strerror(28))

    steps = []

    def append(self: RunFolder, metrics: dict[str, Any]) -> None:
        steps.append(metrics["step"])
        monkeypatch.setattr(os, "replace", full)
        monkeypatch.setattr(RunFolder, "append_metrics", real)
        real(self, metrics)

    real = RunFolder.append_metrics
    monkeypatch.setattr(RunFolder, "append_metrics", append)
    code, _, err = sortie("train", "run.toml", "--runs", tmp_path)
    assert code == 2
    (line,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert "free some space" in line
    monkeypatch.undo()
    run = RunFolder.open(tmp_path / "echo-1")
    assert [metrics["step"] for metrics in run.metrics()] == steps == [1]
    assert {record.step for record in run.trajectories()} >= {0, 1}
    assert run.info().status == "interrupted"


def test_a_run_name_that_is_taken(sortie: Command, at_work: Path) -> None:
    code, _, err = sortie("train", "run.toml", "--name", "first")
    assert code == 2
    assert "first is there already: choose another --name" in err


@pytest.mark.parametrize(
    "command", [("runs", "show"), ("chat",), ("export", "--out", "x")], ids=["runs show", "chat", "export"]
)
def test_a_wrong_run_name_lists_the_runs(sortie: Command, at_work: Path, command: tuple[str, ...]) -> None:
    assert "unknown run in runs/ 'frist': did you mean 'first'?" in refused(sortie(*command, "frist"))


def test_no_model_at_all(sortie: Command) -> None:
    assert refused(sortie("eval", "arithmetic")).startswith("which model? give --model NAME")


def test_a_model_that_contradicts_the_run(sortie: Command, at_work: Path) -> None:
    line = refused(sortie("eval", "arithmetic", "--run", "first", "--model", "smollm2-135m"))
    assert line == "run 'first' trained './tiny': leave --model out, or leave --run out"


def test_a_remote_model_without_a_key(sortie: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert "set OPENAI_API_KEY" in refused(sortie("eval", "arithmetic", "--model", "openai:gpt-x"))


def test_a_level_that_is_not_there(sortie: Command) -> None:
    line = refused(sortie("rollout", "arithmetic", "--oracle", "--level", "99"))
    assert line.startswith("environment 'arithmetic' has no level 99; levels: 1, 2")


def test_a_task_that_is_not_there(sortie: Command, at_work: Path) -> None:
    line = refused(sortie("rollout", "cli_world:env", "--oracle", "--task", "999"))
    assert line.startswith("environment 'echo' has ")


def test_ctrl_c_is_one_line(sortie: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from sortie.core import run_folder

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_folder, "list_runs", interrupted)
    code, out, err = sortie("runs", "list")
    assert (code, out, err.strip()) == (130, "", "stopped")


def test_a_bug_keeps_its_traceback(sortie: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from sortie.core import run_folder

    def broken(*args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(run_folder, "list_runs", broken)
    with pytest.raises(ZeroDivisionError):
        sortie("runs", "list")
