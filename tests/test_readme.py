"""What the README promises, run."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import sortie
from sortie.cli.main import cli, main
from sortie.cli.reference import contexts
from sortie.core.messages import ToolCall
from sortie.inference.renderers.messages import MessageRenderer
from tiny_folder import make_tiny_folder

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "recipes").glob("*/README.md")])


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The README's environment, saved as the file that the README says, in an empty working directory."""
    (block,) = re.findall(r"```python\n(.*?)```", README, re.S)
    (tmp_path / "old_units.py").write_text(block)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    spec = importlib.util.spec_from_file_location("old_units", tmp_path / "old_units.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "old_units", module)
    spec.loader.exec_module(module)
    return module


def test_the_environment_is_the_documented_example_and_takes_20_lines() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", README, re.S)
    assert block == (ROOT / "docs" / "examples" / "old_units.py").read_text()
    code = [line for line in block.splitlines() if line.strip() and not line.strip().startswith(('"""', "#"))]
    assert len(code) <= 20


async def test_a_model_that_calls_the_tool_and_answers_is_rewarded(example: ModuleType) -> None:
    env, renderer = example.env, MessageRenderer()
    tasks = [*env.tasks("train"), *env.tasks("heldout")]
    task = next(task for task in tasks if task.prompt == "How many metres are 30 cubits?")
    call = ToolCall(name="to_metres", arguments={"amount": 30, "unit": "cubits"})
    for answer, reward in (("13.716", 1.0), ("13.7", 0.0)):
        replies = [sortie.assistant("", call), sortie.assistant(answer)]
        engine = sortie.RolloutEngine(sortie.ScriptedClient.from_texts(renderer, replies), renderer)
        trajectory = await engine.run_one(env, task)
        assert trajectory.tools[0].output == "13.716"
        assert trajectory.reward == reward


async def test_the_environment_trains_also_inside_a_running_loop(example: ModuleType) -> None:
    summary = sortie.train(
        example.env,
        model=str(make_tiny_folder(Path("tiny"))),
        steps=1,
        rollouts={"groups": 2, "group_size": 2, "limits": {"turn_tokens": 4}},
        eval={"tasks": 2},
        say=lambda line: None,
    )
    assert set(summary.after) == {"old-units", "pooled"}
    assert sortie.RunFolder.open("old-units-1").info().status == "finished"


def test_the_environment_goes_by_module_and_attribute(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    make_tiny_folder(Path("tiny"))
    assert main(["rollout", "old_units:env", "--model", "./tiny"]) == 0
    assert capsys.readouterr().out.startswith("ended    ")


def test_every_command_of_the_pages_is_one_that_there_is() -> None:
    known = {context.command_path for context in contexts(cli, "sortie")}
    used = [line for page in PAGES for line in re.findall(r"^(?:\$ )?(sortie [^#\n]*)", page.read_text(), re.M)]
    assert used
    for line in used:
        words = line.split()
        assert " ".join(words[:2]) in known or " ".join(words[:3]) in known, line


def test_every_link_between_the_pages_leads_somewhere() -> None:
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)#]+)", page.read_text())]
    broken = [(page.name, link) for page, link in links if "://" not in link and not (page.parent / link).exists()]
    assert broken == []
