"""A guest who says only what is asked: find out what is missing, book, and hear what has changed."""

from __future__ import annotations

from sortie.agents.react import ReAct
from sortie.core.messages import ToolCall, assistant, tool_result, user
from sortie.envs.catalog.booking.desk import as_wished, opened
from sortie.envs.catalog.booking.guest import respond
from sortie.envs.catalog.booking.tasks import GRADES, hostile, oracle
from sortie.envs.catalog.booking.tools import TOOLS
from sortie.envs.env import Env
from sortie.envs.graded import CatalogEntry, GradedConfig

NAME = "booking"
DESCRIPTION = "Tables to book for a guest who answers questions, takes another time, or changes a wish"

# For a name that no task has.
EXAMPLE = (
    user("Zoe: table Friday at 7."),
    assistant("How many?"),
    user("4."),
    assistant("", ToolCall(name="book", arguments={"name": "Zoe", "day": "Friday", "time": 7, "n": 4})),
    tool_result("ok", "book"),
    assistant("Done."),
)


def build(config: GradedConfig) -> Env:
    """The environment with the chosen levels."""
    turns = max(grade.turns for grade in config.chosen(NAME, GRADES).values())
    return Env(
        NAME,
        tasks=config.tasks(NAME, GRADES, "train"),
        heldout=config.tasks(NAME, GRADES, "heldout"),
        tools=TOOLS,
        rewards=[as_wished],
        agent=ReAct(max_turns=turns + 1),
        setup=opened,
        respond=respond,
        description=DESCRIPTION,
        examples=(EXAMPLE,),
        oracle=oracle,
        hostile=hostile,
    )


ENTRY = CatalogEntry(name=NAME, description=DESCRIPTION, grades=GRADES, config=GradedConfig, build=build)
