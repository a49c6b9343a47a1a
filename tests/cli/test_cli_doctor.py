"""`sortie doctor` on a machine, a model, a run file and a run."""

from __future__ import annotations

import json
from pathlib import Path

from command import Command


def test_a_run_file_is_looked_at_from_machine_to_one_small_step(sortie: Command, at_work: Path) -> None:
    code, out, err = sortie("doctor", "run.toml", "--json", "--set", "engine.kv_memory_mb=16")
    checks = json.loads(out)
    names = [check["name"] for check in checks]
    assert code == 0, out
    assert {"run file", "cores", "memory", "disk", "torch", "isolation", "engine", "trainer", "dry run"} <= set(names)
    assert all(check["finding"] for check in checks)
    assert "taking one small step" in err
    assert [path.name for path in (at_work / "runs").iterdir()] == ["first"]


def test_a_run_file_that_fails_ends_with_code_1_and_says_why(sortie: Command, at_work: Path) -> None:
    code, out, _ = sortie("doctor", "run.toml", "--set", "rollouts.limits.window=8", "--runs", at_work / "runs")
    assert code == 1
    assert out.startswith("fail  run file  rollouts.limits.turn_tokens must be below rollouts.limits.window")
    assert out.splitlines()[1].strip().startswith("-> ")
    assert out.splitlines()[-1].startswith("1 failed")


def test_a_run_is_looked_at_without_loading_anything(sortie: Command, at_work: Path) -> None:
    code, out, _ = sortie("doctor", "first")
    assert "zero variance" in out
    assert "truncated answers" in out
    assert "sampled tokens per second" in out
    assert code == int("fail" in out.split()[0])


def test_the_machine_and_a_model_by_themselves(sortie: Command, at_work: Path) -> None:
    assert "GFLOP/s" in sortie("doctor")[1]
    code, out, _ = sortie("doctor", "--model", "./tiny")
    assert code == 0
    assert "growing prompt" in out


def test_what_makes_no_sense_together_is_refused(sortie: Command, at_work: Path) -> None:
    assert sortie("doctor", "first", "--model", "./tiny")[0] == 2
    assert sortie("doctor", "first", "--set", "steps=1")[0] == 2
    code, _, err = sortie("doctor", "secnd")
    assert code == 2
    assert "first" in err
