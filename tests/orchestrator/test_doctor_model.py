"""Model fidelity, the machine, isolation and the dry run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from small_run import config

from sortie.core.errors import PrefixBreak
from sortie.core.messages import Message
from sortie.core.tool_schema import ToolSchema
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.doctor import machine
from sortie.orchestrator.doctor.check import Check
from sortie.orchestrator.doctor.dry_run import dry_run_checks, shortened
from sortie.orchestrator.doctor.examine import examine_run_file
from sortie.orchestrator.doctor.fidelity import fidelity_checks, renderer_checks
from sortie.orchestrator.doctor.isolation import judged
from sortie.orchestrator.doctor.machine import machine_checks
from toy import ToyRenderer

ENV = """
import sortie

@sortie.reward(inline=True)
def drawn(trajectory: sortie.Trajectory) -> float:
    return float(trajectory.nodes[-1].token_ids[0])

@sortie.reward(inline=True)
def broken() -> float:
    raise KeyError("no such key")

def sound() -> sortie.Env:
    return sortie.Env("sound", tasks=[{"prompt": f"say {i}"} for i in range(40)], rewards=[drawn])

def failing() -> sortie.Env:
    return sortie.Env("failing", tasks=[{"prompt": f"say {i}"} for i in range(40)], rewards=[broken])
"""


def named(checks: Sequence[Check], name: str) -> Check:
    return next(check for check in checks if check.name == name)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with environments of one's own."""
    (tmp_path / "doctor_world.py").write_text(ENV)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


async def test_a_sound_model_agrees_with_itself_in_every_way(model: Path) -> None:
    """Pain A1, A8, H1, K11."""
    checks = await fidelity_checks(config(model))
    assert {check.name: check.status for check in checks} == {
        "tools in the prompt": "ok",
        "tool calls": "ok",
        "growing prompt": "ok",
        "engine": "ok",
        "trainer": "ok",
    }
    assert "importance ratio is 1.000" in named(checks, "trainer").finding


async def test_a_model_that_is_not_there_is_one_failed_check() -> None:
    (check,) = await fidelity_checks(config(Path("./nowhere")))
    assert (check.name, check.status) == ("model", "fail")


class Forgetful(ToyRenderer):
    """Leaves its tools out."""

    def render(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, generate: bool = True
    ) -> list[int]:
        return super().render(messages, (), generate=generate)


class Doubling(ToyRenderer):
    """Says every new message twice when it grows, once when it renders."""

    def extend(
        self,
        history: Sequence[Message],
        sampled: Sequence[int],
        new: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
    ) -> list[int]:
        return super().extend(history, sampled, [*new, *new], tools)


def test_the_toy_renderer_passes() -> None:
    assert {check.status for check in renderer_checks(ToyRenderer())} == {"ok"}


def test_tools_that_the_template_leaves_out_fail() -> None:
    """Pain A4: the model never learns that it has tools."""
    check = named(renderer_checks(Forgetful()), "tools in the prompt")
    assert check.status == "fail"
    assert "'look_up'" in check.finding


def test_growth_that_differs_from_rendering_fails_and_shows_where() -> None:
    """Pain A1."""
    check = named(renderer_checks(Doubling()), "growing prompt")
    assert check.status == "fail"
    assert "differ from token" in check.finding


def test_rewritten_history_is_a_warning_since_rows_stay_right() -> None:
    with pytest.raises(PrefixBreak):
        ToyRenderer(breaks_at=1).extend([Message(role="user", content="x")], [5], [])
    assert named(renderer_checks(ToyRenderer(breaks_at=1)), "growing prompt").status == "warn"


def test_the_machine_is_measured(tmp_path: Path) -> None:
    checks = machine_checks(tmp_path)
    assert [check.name for check in checks] == ["cores", "memory", "disk", "torch"]
    assert "GFLOP/s measured" in named(checks, "torch").finding


def test_too_little_memory_fails_and_says_which_settings_to_lower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "free_memory", lambda: 3e9)
    check = named(machine_checks(tmp_path, needed_bytes=4e9), "memory")
    assert (check.status, check.finding) == ("fail", "3.0 GB free, about 4.0 GB needed")
    assert "engine.kv_memory_mb" in check.remedy
    assert named(machine_checks(tmp_path, needed_bytes=1e9), "memory").status == "ok"


def test_more_threads_than_cores_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "usable_cores", lambda: 2)
    check = named(machine_checks(tmp_path, threads=8), "cores")
    assert (check.status, check.remedy) == ("warn", "set threads = 2, or leave it out")


@pytest.mark.parametrize(
    ("ways", "needed_by", "status"),
    [
        ({"bubblewrap": "not installed", "namespaces": None}, ["python_tests"], "ok"),
        ({"bubblewrap": "not installed", "namespaces": "refused"}, [], "warn"),
        ({"bubblewrap": "not installed", "namespaces": "refused"}, ["python_tests"], "fail"),
    ],
)
def test_isolation_fails_only_where_an_environment_needs_it(
    ways: dict[str, str | None], needed_by: list[str], status: str
) -> None:
    check = judged(ways, needed_by)
    assert check.status == status
    assert "not installed" in check.finding


def test_a_dry_run_keeps_all_settings_but_the_counts(model: Path) -> None:
    full = config(model, steps=9, tracker="trackio", eval={"tasks": 40, "every": 2, "temperature": 0.5})
    short = shortened(full)
    assert (short.steps, short.rollouts.groups, short.rollouts.group_size, short.eval.tasks) == (1, 1, 2, 1)
    assert (short.tracker, short.eval.every, short.eval.temperature) == (None, None, 0.5)
    assert short.rollouts.limits == full.rollouts.limits
    assert short.lora == full.lora


async def test_a_sound_run_file_goes_through_one_step_and_leaves_nothing(model: Path, own: Path) -> None:
    said: list[str] = []
    c = config(model, env=[{"name": "doctor_world:sound"}])
    checks = await examine_run_file(c, own / "runs", said.append)
    done = named(checks, "dry run")
    assert done.status == "ok", done.finding
    assert "one step and 3 rollouts" in done.finding
    assert "fail" not in {check.status for check in checks}
    assert said == ["looking at the run file and the machine", f"looking at {model}", "taking one small step"]
    assert not (own / "runs").exists()


async def test_a_reward_that_always_breaks_fails_the_dry_run_with_its_cause(model: Path, own: Path) -> None:
    (check,) = await dry_run_checks(config(model, env=[{"name": "doctor_world:failing"}]))
    assert check.status == "fail"
    assert "no such key" in check.finding


async def test_a_run_file_that_cannot_work_fails_without_loading_a_model(tmp_path: Path) -> None:
    c = RunConfig.model_validate({"model": "./nowhere", "env": [{"name": "no_such_env"}]})
    checks = await examine_run_file(c, tmp_path, lambda line: None)
    assert named(checks, "run file").status == "fail"
    assert "no_such_env" in named(checks, "run file").finding
    assert all(check.name not in ("engine", "dry run") for check in checks)
