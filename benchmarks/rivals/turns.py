"""Workers taking turns, and what their rounds say: medians, and ratios with the range over rounds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from benchmarks.rivals.worker import Worker

Answer = dict[str, Any]


def quiet_machine() -> AbstractContextManager[None]:
    """Entered around every piece of work. Replace it where the machine must be reserved first."""
    return nullcontext()


def rounds(
    workers: Mapping[str, Worker], asks: Mapping[str, Mapping[str, Any]], repeats: int
) -> dict[str, list[Answer]]:
    """Each worker's answers: one round to warm up, which comes first in the lists, then `repeats` that count.

    A slow minute of the machine hits all alike, since within a round each works once.
    """
    answers: dict[str, list[Answer]] = {name: [] for name in workers}
    for _ in range(1 + repeats):
        for name, worker in workers.items():
            with quiet_machine():
                answers[name].append(worker.ask(**asks[name]))
    return answers


def seconds(answers: Sequence[Answer]) -> list[float]:
    """Of the rounds that count."""
    return [float(answer["seconds"]) for answer in answers[1:]]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, lowest and highest."""
    return {"value": statistics.median(values), "low": min(values), "high": max(values)}


def speedup(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """How many times faster we are, from seconds of the same rounds: each round is one ratio."""
    return spread([their / our for our, their in zip(ours, theirs, strict=True)])


def target(name: str, value: Mapping[str, float], wanted: float, *, at_most: bool = False) -> dict[str, Any]:
    """A line of the shared shape. It is met if the median is."""
    met = value["value"] <= wanted if at_most else value["value"] >= wanted
    return {"name": name, **value, "target": wanted, "met": met}
