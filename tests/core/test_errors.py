"""Errors name their boundary and their remedy."""

from __future__ import annotations

import re

import pytest

from sortie.core import errors
from sortie.core.errors import BoundaryError, MissingExtra, SortieError, ToolError, UnknownName, blame


def test_the_tree_in_the_docstring_is_the_tree_in_the_code() -> None:
    defined = {name for name, item in vars(errors).items() if isinstance(item, type) and issubclass(item, SortieError)}
    assert errors.__doc__ is not None
    assert set(re.findall(r"^[│├└─ ]*([A-Z]\w+)", errors.__doc__, re.M)) - {"Every"} == defined


def test_a_foreign_exception_becomes_the_boundarys_error_and_keeps_its_cause() -> None:
    with pytest.raises(ToolError, match="tool 'x' raised KeyError: 'k'") as caught, blame(ToolError, "tool 'x'"):
        raise KeyError("k")
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.boundary == "tool"


def test_an_error_that_names_its_boundary_passes_unchanged() -> None:
    inner = errors.EnvError("env")
    with pytest.raises(errors.EnvError) as caught, blame(ToolError, "outer"):
        raise inner
    assert caught.value is inner


def test_only_infrastructure_is_retryable() -> None:
    """Pain F5."""
    retryable = {error.__name__ for error in every(BoundaryError) if error.retryable}
    assert retryable == {"ModelError", "ResourceError", "LeaseTimeout"}


def test_a_wrong_name_gets_the_nearest_right_one() -> None:
    assert str(UnknownName("model", "smolm2", ["smollm2", "other"])) == (
        "unknown model 'smolm2': did you mean 'smollm2'? known: other, smollm2"
    )


def test_a_missing_extra_names_the_command() -> None:
    assert str(MissingExtra("tracking", "track")).endswith("pip install 'sortie-rl[track]'")


def every(root: type[BoundaryError]) -> list[type[BoundaryError]]:
    return [root, *(error for child in root.__subclasses__() for error in every(child))]
