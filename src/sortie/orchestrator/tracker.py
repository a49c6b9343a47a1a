"""Metrics into an experiment tracker with the wandb call shape: `init`, `log`, `finish`.

The run folder is the record; a tracker is a copy for looking at. Whatever it raises is said once and ends nothing.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sortie.core.errors import MissingExtra

PROJECT = "sortie"
EXTRAS = {"trackio": "track"}
"""Tracker, which is also its module's name, to the extra that installs it."""

log = logging.getLogger("sortie")


class WandbLike(Protocol):
    """What Sortie calls of a tracker module."""

    def init(self, *, project: str, name: str, config: dict[str, Any]) -> Any: ...
    def log(self, metrics: dict[str, Any], step: int) -> Any: ...
    def finish(self) -> Any: ...


def require(name: str) -> WandbLike:
    """The module of a tracker.

    Raises: MissingExtra if it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise MissingExtra(f"tracker {name!r}", EXTRAS.get(name, name)) from None


def open_tracker(name: str | None, run: str, config: Mapping[str, Any]) -> Tracker:
    """Begin a run with the tracker of that name; None: one that does nothing.

    Raises: MissingExtra if it is not installed.
    """
    tracker = Tracker(require(name) if name is not None else None)
    tracker.init(run, config)
    return tracker


class Tracker:
    """Forwards to a tracker module until it fails once; without a module it does nothing."""

    def __init__(self, module: WandbLike | None = None) -> None:
        self._module = module

    def init(self, run: str, config: Mapping[str, Any]) -> None:
        """Begin a run with its settings."""
        self._attempt(lambda module: module.init(project=PROJECT, name=run, config=dict(config)))

    def log(self, metrics: Mapping[str, Any], step: int) -> None:
        """Send one step's numbers; what is not a number stays behind."""
        numbers = {key: value for key, value in metrics.items() if isinstance(value, int | float)}
        self._attempt(lambda module: module.log(numbers, step=step))

    def finish(self) -> None:
        """End the run; safe to call twice."""
        self._attempt(lambda module: module.finish())
        self._module = None

    def _attempt(self, call: Callable[[WandbLike], Any]) -> None:
        if self._module is None:
            return
        try:
            call(self._module)
        except Exception as error:  # noqa: BLE001  # a foreign service may raise anything, and training goes on
            log.warning("the tracker failed and is off from here on: %s: %s", type(error).__name__, error)
            self._module = None
