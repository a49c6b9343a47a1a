"""A run that stands still says where. Pain K9, K10."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest
from test_rollout_engine import TASK, Env, engine

from sortie.agents.reward import reward
from sortie.agents.tool import tool
from sortie.core.messages import ToolCall, assistant
from sortie.core.trajectory import ToolRecord, Trajectory
from sortie.rollouts.watch import SHOWN, Watch, last_event, mark


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def rollout(number: int = 0) -> Trajectory:
    return Trajectory(id=f"toy/{number}@0.0", task_key=f"toy/{number}", env="toy")


async def test_a_stall_names_the_oldest_their_phase_and_their_last_event() -> None:
    """Pain K10."""
    clock = Clock()
    watch = Watch(60, clock)
    stuck = rollout()
    with watch.following(stuck):
        clock.now = 10
        mark("acting")
        stuck.add("sampled", [1], None)
        stuck.tools.append(ToolRecord(name="search", arguments={}, output="", error=True))
        clock.now = 59
        assert watch.stalled() == []
        clock.now = 70
        head, line = watch.stalled()
    assert head == "no rollout has ended for 70 s; 1 in flight, the oldest:"
    assert line == "toy/0@0.0 (toy): acting for 60 s, in flight for 70 s; last: tool search called and not back"
    assert watch.stalled() == []


async def test_an_ended_rollout_is_a_sign_of_life_whatever_its_siblings_do() -> None:
    clock = Clock()
    watch = Watch(60, clock)
    with watch.following(rollout(1)):
        clock.now = 59
        with watch.following(rollout(2)):
            pass
        clock.now = 118
        assert watch.stalled() == []
        clock.now = 119
        assert "no rollout has ended for 60 s" in watch.stalled()[0]


async def test_a_long_list_is_cut_at_the_oldest() -> None:
    clock = Clock()
    watch = Watch(60, clock)
    flights = [watch.following(rollout(i)) for i in range(SHOWN + 2)]
    for flight in flights:
        clock.now += 1
        flight.__enter__()
    clock.now = 100
    lines = watch.stalled()
    assert [line.split()[0] for line in lines[1:-1]] == [f"toy/{i}@0.0" for i in range(SHOWN)]
    assert lines[-1] == "and 2 more"
    for flight in reversed(flights):
        flight.__exit__(None, None, None)
    assert watch.in_flight == []


def test_the_last_event_is_read_off_the_record() -> None:
    t = rollout()
    assert last_event(t) == "nothing drawn yet"
    t.add("sampled", [1], None)
    assert last_event(t) == "turn 1 drawn"
    t.tools.append(ToolRecord(name="search", arguments={}, output="found", seconds=0.1))
    assert last_event(t) == "turn 1 drawn, tool search back"


def test_marking_a_phase_outside_of_a_rollout_does_nothing() -> None:
    mark("acting")


class OnWarning(logging.Handler):
    """Acts once a warning holds every one of some words."""

    def __init__(self, act: Callable[[], None], *words: str) -> None:
        super().__init__(logging.WARNING)
        self.act = act
        self.words = words

    def emit(self, record: logging.LogRecord) -> None:
        if all(word in record.getMessage() for word in self.words):
            self.act()


@pytest.mark.parametrize("place", ["tool", "reward"])
async def test_the_engine_warns_of_a_rollout_that_hangs(place: str) -> None:
    """Pain K9: the rollout goes on only after a warning has named it and where it hangs."""
    warned = asyncio.Event()

    @tool
    async def search() -> str:
        """Search."""
        if place == "tool":
            await warned.wait()
        return "found"

    @reward
    async def slow() -> float:
        if place == "reward":
            await warned.wait()
        return 1.0

    where = {"tool": "tool search called and not back", "reward": ": scoring for"}[place]
    handler = OnWarning(warned.set, TASK.key, where)
    logging.getLogger("sortie").addHandler(handler)
    try:
        replies = [assistant("", ToolCall(name="search")), "done"]
        running = engine(replies, stall_s=0.02)
        await running.run_one(Env(tools=[search], rewards=[slow]), TASK)
    finally:
        logging.getLogger("sortie").removeHandler(handler)
    assert warned.is_set()
    assert (running.watch.in_flight, running.watch.ended) == ([], 1)


async def test_nothing_is_left_running_when_all_rollouts_have_ended() -> None:
    watch = Watch(60)
    with watch.following(rollout()):
        assert watch._timer is not None
    assert watch._timer is None
