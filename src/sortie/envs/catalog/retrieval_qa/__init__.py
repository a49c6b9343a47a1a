"""Questions over a corpus of short documents: search, read, follow what they say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sortie.agents.react import ReAct
from sortie.context.run_context import RunContext
from sortie.core.messages import ToolCall, assistant, tool_result, user
from sortie.core.task import Task
from sortie.envs.catalog.retrieval_qa.corpus import corpus
from sortie.envs.catalog.retrieval_qa.library import Library
from sortie.envs.catalog.retrieval_qa.rewards import correct
from sortie.envs.catalog.retrieval_qa.tasks import GRADES, hostile, oracle
from sortie.envs.catalog.retrieval_qa.tools import TOOLS
from sortie.envs.env import Env
from sortie.envs.graded import CatalogEntry, GradedConfig

NAME = "retrieval_qa"
DESCRIPTION = "Search and read a local corpus; answers lie up to three documents away"
SLIPS = 2
"""Turns beyond the flawless ones: one wrong document."""
NEAREST = 3
"""Turns of one hop."""

_PERSON = (
    assistant("", ToolCall(name="search", arguments={"words": "Zoe Quill"})),
    tool_result("901 Zoe Quill\n902 Yves Quill", "search"),
    assistant("", ToolCall(name="read", arguments={"n": 901})),
    tool_result("Zoe Quill: employer Iron Duck; home Salt Rock; friend Yves Quill; birth year 1999", "read"),
)
_COMPANY = (
    assistant("", ToolCall(name="search", arguments={"words": "Iron Duck"})),
    tool_result("903 Iron Duck\n901 Zoe Quill", "search"),
    assistant("", ToolCall(name="read", arguments={"n": 903})),
    tool_result("Iron Duck: seat Salt Rock; head Yves Quill; product sleds", "read"),
)
NEAR = (user("What is the employer of Zoe Quill?"), *_PERSON, assistant("Iron Duck"))
FAR = (user("What is the seat of the employer of Zoe Quill?"), *_PERSON, *_COMPANY, assistant("Salt Rock"))


def build(config: GradedConfig) -> Env:
    """The environment with the chosen levels and an index of its own, built once, which all rollouts share.

    Where no question takes two hops, neither does the example.
    """
    turns = max(grade.turns for grade in config.chosen(NAME, GRADES).values())
    library = Library(corpus().documents)

    @contextmanager
    def opened(task: Task, ctx: RunContext) -> Iterator[Library]:
        yield library

    return Env(
        NAME,
        tasks=config.tasks(NAME, GRADES, "train"),
        heldout=config.tasks(NAME, GRADES, "heldout"),
        tools=TOOLS,
        rewards=[correct],
        agent=ReAct(max_turns=turns + SLIPS),
        setup=opened,
        description=DESCRIPTION,
        examples=(FAR if turns > NEAREST else NEAR,),
        oracle=oracle,
        hostile=hostile,
    )


ENTRY = CatalogEntry(name=NAME, description=DESCRIPTION, grades=GRADES, config=GradedConfig, build=build)
