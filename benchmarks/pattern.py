"""The agent pattern that benchmarks.agents runs: fixed lengths, so that the work is the same whoever serves it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence

from sortie.agents.reward import reward
from sortie.context.limits import LimitReached, Limits
from sortie.context.run_context import RunContext
from sortie.core.config import Config
from sortie.core.messages import Message, assistant, user
from sortie.core.task import Task
from sortie.core.trajectory import StopReason, Trajectory
from sortie.envs import Env
from sortie.inference.renderers.base import Renderer

GROUP = 8
PROMPT = 200
TURNS = 3
DRAWN = 40
"""Tokens of every turn."""
OBSERVED = 60
"""Tokens between two turns: closing of the cut turn, the observation, opening of the next."""
WORDS = (
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "it",
    "you",
    "that",
    "he",
    "was",
    "for",
    "on",
    "are",
    "with",
    "as",
    "his",
)
TRIES = 100
LIMITS = Limits(turn_tokens=DRAWN, rollout_tokens=DRAWN * TURNS, seconds=600.0)


class Endless:
    """A renderer whose turns have no end: they go on to their token limit."""

    stop_ids: tuple[int, ...] = ()

    def __init__(self, inner: Renderer) -> None:
        self.inner = inner
        self.encode, self.decode = inner.encode, inner.decode
        self.render, self.extend = inner.render, inner.extend
        self.parse, self.spell = inner.parse, inner.spell


class FixedTurns(Config):
    """Draws every turn to its token limit; between turns a tool thinks for `latency_s` and answers."""

    latency_s: float
    observations: tuple[tuple[str, ...], ...]
    """Texts of one member's observations, in order."""

    async def run(self, task: Task, ctx: RunContext) -> None:
        """Raises: LimitReached for any limit but that of a turn."""
        assert isinstance(task.prompt, str)
        new: Sequence[Message] = [user(task.prompt)]
        for observation in (*self.observations[ctx.member], None):
            try:
                await ctx.sample(new)
            except LimitReached as limit:
                if limit.reason is not StopReason.TURN_TOKENS:
                    raise
            if observation is not None:
                await asyncio.sleep(self.latency_s)
                new = [user(observation)]


@reward
def present(trajectory: Trajectory) -> float:
    """Whatever it did: only its work is looked at."""
    return 1.0


def make_env(renderer: Renderer, *, groups: int, latency_s: float, key: str) -> Env:
    """`groups` tasks that depend on `key`, with observations of their members that differ."""
    rng = random.Random(key)
    tasks = [{"prompt": fitting(lambda text: renderer.render([user(text)]), PROMPT, rng)} for _ in range(groups)]
    # An observation follows a turn that was cut, whatever was in it: any drawn token stands for it.
    cut = renderer.encode(WORDS[0])
    history = [user("x"), assistant(WORDS[0])]
    members = [
        tuple(
            fitting(lambda text: renderer.extend(history, cut, [user(text)]), OBSERVED, rng) for _ in range(TURNS - 1)
        )
        for _ in range(GROUP)
    ]
    agent = FixedTurns(latency_s=latency_s, observations=tuple(members))
    return Env("pattern", tasks=tasks, rewards=[present], agent=agent, heldout=0.0)


def fitting(spell: Callable[[str], Sequence[int]], wanted: int, rng: random.Random) -> str:
    """Random words that come out as exactly `wanted` tokens. Raises: ValueError if none do."""
    for _ in range(TRIES):
        words: list[str] = [str(rng.randrange(10**6))]
        while (length := len(spell(" ".join(words)))) < wanted:
            words.append(rng.choice(WORDS))
        if length == wanted:
            return " ".join(words)
    raise ValueError(f"{TRIES} random texts and none of exactly {wanted} tokens")


def sent(trajectory: Trajectory) -> int:
    """Tokens of all prompts of a rollout: each turn's is everything before it."""
    return sum(
        sum(len(node.token_ids) for node in trajectory.path(turn.id)[:-1])
        for turn in trajectory.nodes
        if turn.kind == "sampled"
    )


class PrefixSet:
    """Distinct prefixes that a sampler has computed, and how many of them prompts asked for."""

    def __init__(self) -> None:
        self._children: dict[tuple[int, int], int] = {}

    def prompted(self, trajectories: Iterable[Trajectory]) -> int:
        """Tokens of these trajectories' prompts that stand behind a prefix never computed before, each prefix once.

        A turn's tokens are computed while drawing, all but its last, which comes with the next prompt; the last token
        of a trajectory is never computed.
        """
        known = len(self._children)
        prompted: set[int] = set()
        drawing: set[int] = set()
        for trajectory in trajectories:
            at = 0
            for node in trajectory.path(len(trajectory.nodes) - 1):
                for i, token in enumerate(node.token_ids):
                    at = self._children.setdefault((at, token), len(self._children) + 1)
                    last = i == len(node.token_ids) - 1
                    (prompted if last or node.kind != "sampled" else drawing).add(at)
            prompted.discard(at)
        return sum(number > known for number in prompted - drawing)
