"""Names to factories."""

from __future__ import annotations

import pytest

from sortie.core.errors import UnknownName
from sortie.core.registry import Registry


def test_a_name_gives_back_what_was_filed_and_the_decorator_returns_it() -> None:
    registry = Registry[type]("thing")
    assert registry.register("b")(int) is int
    registry.register("a")(str)
    assert registry["a"] is str
    assert list(registry) == ["a", "b"]
    assert "a" in registry
    assert "c" not in registry


def test_a_wrong_name_lists_the_right_ones() -> None:
    registry = Registry[int]("thing")
    registry.register("apple")(1)
    with pytest.raises(UnknownName, match=r"unknown thing 'aple': did you mean 'apple'\? known: apple"):
        registry["aple"]


def test_a_name_is_filed_once() -> None:
    registry = Registry[int]("thing")
    registry.register("a")(1)
    with pytest.raises(ValueError, match="thing 'a' is registered twice"):
        registry.register("a")(2)
