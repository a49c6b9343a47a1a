"""A number to guess in few tries: the environment answers in words, there is no tool."""

from __future__ import annotations

from sortie.agents.react import ReAct
from sortie.core.messages import assistant, user
from sortie.envs.catalog.guess.game import found, opened, respond
from sortie.envs.catalog.guess.tasks import GRADES, hostile, oracle
from sortie.envs.env import Env
from sortie.envs.graded import CatalogEntry, GradedConfig

NAME = "guess"
DESCRIPTION = "A number to guess from more and less, in as few tries as halving needs"

# Starts at 0, where no task does.
EXAMPLE = (
    user("Guess 0 to 6, 3 tries."),
    assistant("3"),
    user("more"),
    assistant("5"),
    user("less"),
    assistant("4"),
)


def build(config: GradedConfig) -> Env:
    """The environment with the chosen levels."""
    turns = max(grade.turns for grade in config.chosen(NAME, GRADES).values())
    return Env(
        NAME,
        tasks=config.tasks(NAME, GRADES, "train"),
        heldout=config.tasks(NAME, GRADES, "heldout"),
        rewards=[found],
        agent=ReAct(max_turns=turns),
        setup=opened,
        respond=respond,
        description=DESCRIPTION,
        examples=(EXAMPLE,),
        oracle=oracle,
        hostile=hostile,
    )


ENTRY = CatalogEntry(name=NAME, description=DESCRIPTION, grades=GRADES, config=GradedConfig, build=build)
