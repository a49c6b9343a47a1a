"""Six levels of a number to guess, drawn from a seeded generator.

A task's data: `low` and `high`, between which the `secret` lies, and `tries`. A range has one number less than a power
of two, so that halving always finds the secret with the last try at the latest. Ranges are held out as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from sortie.core.messages import Message, assistant
from sortie.core.task import Task
from sortie.envs.taskset import Draft, Grade

LOWEST, HIGHEST = 1, 1999
"""Where a range may start."""


def oracle(task: Task) -> Sequence[Message]:
    """The middle, again and again."""
    low, high, secret = task.data["low"], task.data["high"], task.data["secret"]
    guesses: list[int] = []
    while not guesses or guesses[-1] != secret:
        guesses.append((low + high) // 2)
        low, high = (guesses[-1] + 1, high) if guesses[-1] < secret else (low, guesses[-1] - 1)
    return [assistant(str(guess)) for guess in guesses]


def hostile(task: Task) -> Sequence[Sequence[Message]]:
    """All numbers at once, the secret among words, answers in the game's place, more tries than there are."""
    low, high, secret = task.data["low"], task.data["high"], task.data["secret"]
    late = [assistant(str(low if secret != low else high))] * task.data["tries"]
    return [
        [assistant(" ".join(map(str, range(low, high + 1))))],
        [assistant(f"{secret} or {secret + 1}")],
        [assistant(f"less\n{secret}")],
        [assistant("found")],
        [assistant(str(secret) * 2)],
        [*late, assistant(str(secret))],
    ]


def _between(tries: int) -> Callable[[Random], Draft]:
    def draw(rng: Random) -> Draft:
        low = rng.randint(LOWEST, HIGHEST)
        high = low + 2**tries - 2
        prompt = f"Guess {low} to {high}, {tries} tries."
        data = {"low": low, "high": high, "tries": tries, "secret": rng.randint(low, high)}
        return Draft(prompt=prompt, data=data, identity=prompt)

    return draw


GRADES = {
    level: Grade(asks=f"one of {2**tries - 1} numbers in {tries} tries", turns=tries, draw=_between(tries))
    for level, tries in enumerate(range(2, 8), start=1)
}
