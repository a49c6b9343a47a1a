"""The optional tracker."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from sortie.core.errors import MissingExtra
from sortie.orchestrator.tracker import Tracker, open_tracker


class Fake:
    def __init__(self, *, broken: bool = False) -> None:
        self.calls: list[Any] = []
        self.broken = broken

    def init(self, *, project: str, name: str, config: dict[str, Any]) -> None:
        self.calls.append(("init", project, name, config))

    def log(self, metrics: dict[str, Any], step: int) -> None:
        self.calls.append(("log", metrics, step))
        if self.broken:
            raise ConnectionError("no network")

    def finish(self) -> None:
        self.calls.append(("finish",))


def test_calls_arrive_in_the_wandb_shape_and_only_numbers_are_sent() -> None:
    fake = Fake()
    tracker = Tracker(fake)
    tracker.init("run-1", {"steps": 2})
    tracker.log({"reward": 0.5, "note": "text", "loss": None}, step=1)
    tracker.finish()
    tracker.finish()
    assert fake.calls == [("init", "sortie", "run-1", {"steps": 2}), ("log", {"reward": 0.5}, 1), ("finish",)]


def test_a_tracker_that_fails_is_said_once_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    fake = Fake(broken=True)
    tracker = Tracker(fake)
    with caplog.at_level(logging.WARNING, "sortie"):
        for step in range(3):
            tracker.log({"reward": 0.0}, step=step)
    assert [record.getMessage() for record in caplog.records] == [
        "the tracker failed and is off from here on: ConnectionError: no network"
    ]
    assert len(fake.calls) == 1


def test_no_tracker_does_nothing() -> None:
    open_tracker(None, "run-1", {}).log({"reward": 1.0}, step=0)


def test_a_tracker_that_is_not_installed_is_one_line_with_the_command() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'sortie-rl\[no_such_tracker\]'"):
        open_tracker("no_such_tracker", "run-1", {})
