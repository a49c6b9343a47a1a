"""Strict configuration from TOML, and back."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, strategies as st
from pydantic import Field

from sortie.core.config import Config, apply_override, load
from sortie.core.errors import ConfigError
from sortie.orchestrator.config import RunConfig

RUN = 'model = "m"\n[[env]]\nname = "arithmetic"\nlevels = [1, 2]\n'


class Inner(Config):
    """A section."""

    rate: float | None = Field(0.5, gt=0)
    words: tuple[str | None, ...] = ()


class Outer(Config):
    """A small configuration with every kind of value."""

    name: str = "x"
    kind: Literal["a", "b"] | None = None
    count: int | None = Field(None, ge=1)
    inner: Inner = Inner()
    many: tuple[Inner, ...] = ()


WORDS = st.none() | st.text().filter(lambda text: text != "none")
INNER = st.builds(Inner, rate=st.none() | st.floats(1e-9, 1e9), words=st.lists(WORDS, max_size=3).map(tuple))
OUTER = st.builds(
    Outer,
    name=st.text().filter(lambda text: text != "none"),
    kind=st.sampled_from([None, "a", "b"]),
    count=st.none() | st.integers(1, 2**40),
    inner=INNER,
    many=st.lists(INNER, max_size=2).map(tuple),
)


@given(OUTER)
def test_a_configuration_comes_back_equal_none_included(config: Outer) -> None:
    """Pain K3."""
    assert Outer.from_toml(config.to_toml()) == config


def test_the_resolved_run_file_gives_the_same_run() -> None:
    """Pain K3: what is kept in the run folder is the run."""
    overrides = [
        "eval.every=none",
        "optim.grad_clip=none",
        "scheduler.name=uniform",
        "scheduler.floor=0.2",
        "env.0.levels=[3]",
    ]
    config = RunConfig.from_toml(RUN, overrides)
    assert config.optim.grad_clip is None
    assert config.env[0].options == {"levels": [3]}
    assert RunConfig.from_toml(config.to_toml()) == config


def test_an_explicit_none_wins_over_a_default_that_is_not_none() -> None:
    """Pain K3."""
    assert Outer.from_toml("[inner]\nrate = 'none'").inner.rate is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stpes = 4\n" + RUN, "unknown option 'stpes': did you mean 'steps'?"),
        (RUN + "[rollouts]\nqqq = 1", "unknown option 'rollouts.qqq'; known: groups, group_size"),
        (RUN + "[rollouts.limits]\nturn_token = 1", "unknown option 'rollouts.limits.turn_token': did you mean"),
        (RUN + "[loss]\nclip = 1", "unknown option 'loss.clip'"),
        (RUN + "[engine]\nkv_memory = 1", "unknown option 'engine.kv_memory'"),
    ],
)
def test_an_unknown_option_is_an_error_wherever_it_stands(text: str, message: str) -> None:
    """Pain K1: no knob parses and does nothing."""
    with pytest.raises(ConfigError) as caught:
        RunConfig.from_toml(text, source="run.toml")
    assert str(caught.value).startswith(f"run.toml: {message}")
    assert "\n" not in str(caught.value)


def test_temperature_0_is_refused_for_training() -> None:
    """Pain H4."""
    with pytest.raises(ConfigError, match=r"rollouts\.temperature: Input should be greater than 0, got 0"):
        RunConfig.from_toml(RUN, ["rollouts.temperature=0"])


def test_every_problem_gets_a_line_with_its_value() -> None:
    with pytest.raises(ConfigError) as caught:
        RunConfig.from_toml(RUN, ["steps=0", "rollouts.group_size=1"])
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == ["steps", "rollouts.group_size"]


def test_the_same_environment_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="'arithmetic' is listed twice"):
        RunConfig.from_toml(RUN + '[[env]]\nname = "arithmetic"\n')


def test_a_run_without_an_environment_is_refused() -> None:
    with pytest.raises(ConfigError, match="env: Field required"):
        RunConfig.from_toml('model = "m"')


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("steps=4", {"steps": 4}),
        ("model=smollm2-135m", {"model": "smollm2-135m"}),
        ("optim.lr=1e-5", {"optim": {"lr": 1e-5}}),
        ("model = 'a=b'", {"model": "a=b"}),
    ],
)
def test_an_override_is_toml_or_a_bare_word(override: str, expected: object) -> None:
    data: dict[str, object] = {}
    apply_override(data, override)
    assert data == expected


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("steps", "must read key=value"),
        ("model.x=1", "is a plain value"),
        ("model.x.y=1", "below a plain value"),
        ("env.7.name=a", "must be an index below 1"),
        ("env.first=1", "must be an index below 1"),
    ],
)
def test_an_override_that_points_nowhere_is_explained(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        apply_override(tomllib.loads(RUN), override)


def test_a_file_that_is_missing_or_malformed_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    with pytest.raises(ConfigError, match=r"cannot read .*run\.toml: No such file"):
        load(RunConfig, path)
    path.write_text("steps = = 4")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        load(RunConfig, path)
