from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sortie.agents.react import ReAct
from sortie.core.errors import ConfigError, UnknownName, UsageError
from sortie.envs import build, catalog_info
from sortie.envs.registry import CATALOG

MODULE = """
from sortie.envs import Env

env = Env("mine", tasks=[{"prompt": "x"}], heldout=0.0)

def make(size: int = 1) -> Env:
    return Env("made", tasks=[{"prompt": str(n)} for n in range(size)], heldout=0.0)

number = 3
"""


@pytest.fixture
def my_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module in the working directory, as its user would write it."""
    (tmp_path / "my_sortie_env.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield "my_sortie_env"
    sys.modules.pop("my_sortie_env", None)


def test_the_catalog_says_what_each_environment_is_and_takes() -> None:
    info = {entry.name: entry for entry in catalog_info()}
    assert list(info) == sorted(info)
    assert {"arithmetic", "inventory"} <= set(info)
    assert info["arithmetic"].tools == ("calculator(expression: string)",)
    assert all(list(entry.levels) == [1, 2, 3, 4, 5, 6] for entry in info.values())
    assert all(entry.description and all(entry.levels.values()) for entry in info.values())


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("arithmetics", {}, "did you mean 'arithmetic'? known: arithmetic, "),
        ("arithmetic", {"level": [1]}, "environment 'arithmetic': unknown option 'level': did you mean 'levels'?"),
        ("arithmetic", {"levels": [1, 9]}, "has no level 9; levels: 1, 2, 3, 4, 5, 6"),
        ("inventory", {"levels": []}, "levels"),
        ("inventory", {"levels": [2, 2]}, "a level is listed twice"),
        ("inventory", {"tasks_per_level": 0}, "tasks_per_level"),
    ],
)
def test_a_wrong_name_or_option_is_one_line_that_says_what_is_right(
    name: str, options: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError) as error:
        build(name, **options)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_an_environment_of_ones_own_is_found_in_the_working_directory(my_module: str) -> None:
    assert build(f"{my_module}:env").name == "mine"
    assert len(build(f"{my_module}:make", size=4).tasks("train")) == 4


@pytest.mark.parametrize(
    ("attribute", "options", "says"),
    [
        ("envy", {}, "no 'envy' in 'my_sortie_env'; its environments: env"),
        ("number", {}, "is a int, not an Env"),
        ("env", {"size": 2}, "takes no options; got size"),
        ("make", {"sise": 2}, "unexpected keyword argument 'sise'; it takes (size: int = 1)"),
    ],
)
def test_an_attribute_that_is_no_environment_is_one_line(
    my_module: str, attribute: str, options: dict[str, object], says: str
) -> None:
    with pytest.raises(ConfigError) as error:
        build(f"{my_module}:{attribute}", **options)
    assert says in str(error.value)


def test_a_module_that_is_not_there_is_one_line() -> None:
    with pytest.raises(ConfigError, match="cannot import 'no_such_module_at_all'"):
        build("no_such_module_at_all:env")


def test_an_unknown_name_is_an_unknown_name() -> None:
    with pytest.raises(UnknownName):
        build("chess")


def test_turns_follow_from_the_hardest_level_chosen() -> None:
    def turns(levels: list[int]) -> int:
        agent = build("inventory", levels=levels).agent
        assert isinstance(agent, ReAct)
        return agent.max_turns

    assert turns([1]) < turns([1, 3]) < turns([6, 1])


@pytest.mark.parametrize("name", list(CATALOG))
def test_worked_examples_can_be_left_out(name: str) -> None:
    assert build(name, examples=False).examples == ()


def test_worked_examples_are_shown_unless_told_otherwise() -> None:
    assert len(build("arithmetic").examples) == 2
