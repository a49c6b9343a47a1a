"""Environments by name: the catalog's, or anyone's as `module:attribute`."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from dataclasses import dataclass
from typing import Any

from sortie.core.config import parse
from sortie.core.errors import ConfigError, UnknownName
from sortie.core.registry import Registry
from sortie.envs.catalog import (
    arithmetic,
    booking,
    checkout,
    filesystem,
    guess,
    inventory,
    python_tests,
    retrieval_qa,
    sqlite_qa,
    text_world,
)
from sortie.envs.env import Env
from sortie.envs.graded import CatalogEntry

CATALOG: Registry[CatalogEntry] = Registry("environment")
_MODULES = (
    arithmetic,
    booking,
    checkout,
    filesystem,
    guess,
    inventory,
    python_tests,
    retrieval_qa,
    sqlite_qa,
    text_world,
)
for _module in _MODULES:
    CATALOG.register(_module.ENTRY.name)(_module.ENTRY)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvInfo:
    """What a listing says about a catalog environment."""

    name: str
    description: str
    levels: dict[int, str]
    """What each level asks for."""
    tools: tuple[str, ...]
    """Signatures of its tools."""


def build(name: str, **options: Any) -> Env:
    """The environment called `name`, a catalog name or `module:attribute`, with its options.

    The attribute is an Env, or a function that takes the options and returns one. Modules are also looked for in the
    working directory.
    Raises: UnknownName listing the right names; ConfigError for options that are unknown or out of range.
    """
    if ":" in name:
        return _imported(name, options)
    if name not in CATALOG:
        raise UnknownName("environment", name, [*CATALOG, "module:attribute"])
    entry = CATALOG[name]
    config = parse(entry.config, options, source=f"environment {name!r}")
    env = entry.build(config)
    if not config.examples:  # here and not in each environment, so that none can forget it
        env.examples = ()
    return env


def catalog_info() -> list[EnvInfo]:
    """The catalog, by name."""
    return [
        EnvInfo(
            name=name,
            description=CATALOG[name].description,
            levels={level: grade.asks for level, grade in CATALOG[name].grades.items()},
            tools=tuple(tool.schema.signature() for tool in build(name).tools),
        )
        for name in CATALOG
    ]


def levels_of(name: str) -> tuple[int, ...]:
    """All levels of a catalog environment; none for one by `module:attribute`, which takes options of its own."""
    return tuple(CATALOG[name].grades) if name in CATALOG else ()


def _imported(name: str, options: dict[str, Any]) -> Env:
    target = _attribute(name)
    if not isinstance(target, Env) and callable(target):
        try:
            inspect.signature(target).bind(**options)
        except TypeError as error:
            raise ConfigError(f"environment {name!r}: {error}; it takes {inspect.signature(target)}") from None
        target, options = target(**options), {}
    if not isinstance(target, Env):
        raise ConfigError(f"{name!r} is a {type(target).__name__}, not an Env or a function returning one")
    if options:
        raise ConfigError(f"environment {name!r} is an Env, which takes no options; got {', '.join(options)}")
    return target


def _attribute(name: str) -> Any:
    """Raises: ConfigError saying which part of `module:attribute` is not there."""
    module_name, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:  # an installed command does not look where it was called
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"environment {name!r}: cannot import {module_name!r}: {error}") from None
    try:
        return getattr(module, attribute)
    except AttributeError:
        kinds = sorted(key for key, value in vars(module).items() if isinstance(value, Env))
        known = ", ".join(kinds) or "none"
        raise ConfigError(
            f"environment {name!r}: no {attribute!r} in {module_name!r}; its environments: {known}"
        ) from None
