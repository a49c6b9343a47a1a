"""One game: what it answers to a guess, and when it is over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sortie.agents.reward import reward
from sortie.context.run_context import Done, Response, RunContext
from sortie.core.messages import Message
from sortie.core.task import Task

_GUESS = re.compile(r"\s*([0-9]{1,6})\.?\s*")


@dataclass(slots=True)
class Game:
    """A secret and the tries left. Whatever is said costs a try, so that no turn is free."""

    secret: int
    left: int
    found: bool = False

    def hear(self, text: str) -> str | None:
        """The answer to one guess; None: the game is over."""
        guess = read(text)
        self.left -= 1
        self.found = guess == self.secret
        if self.found or self.left == 0:
            return None
        if guess is None:
            return "number?"
        return "more" if guess < self.secret else "less"


def read(text: str) -> int | None:
    """The guess, where the whole text is one number: whoever lists numbers has not guessed."""
    guess = _GUESS.fullmatch(text)
    return int(guess.group(1)) if guess else None


@contextmanager
def opened(task: Task, ctx: RunContext) -> Iterator[Game]:
    """A new game, one per rollout."""
    yield Game(secret=task.data["secret"], left=task.data["tries"])


def respond(ctx: RunContext, message: Message) -> Response:
    """The game's side of the conversation."""
    game: Game = ctx.state
    return game.hear(message.content) or Done()


@reward(inline=True)
def found(state: Game) -> float:
    """1 if the secret was guessed, else 0."""
    return float(state.found)
