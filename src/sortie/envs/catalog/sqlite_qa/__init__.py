"""Questions about a small database: list its tables, describe them, query."""

from __future__ import annotations

from sortie.agents.react import ReAct
from sortie.core.messages import Message, ToolCall, assistant, tool_result, user
from sortie.envs.catalog.sqlite_qa.database import opened
from sortie.envs.catalog.sqlite_qa.rewards import correct
from sortie.envs.catalog.sqlite_qa.tasks import GRADES, hostile, oracle
from sortie.envs.catalog.sqlite_qa.tools import TOOLS
from sortie.envs.env import Env
from sortie.envs.graded import CatalogEntry, GradedConfig

NAME = "sqlite_qa"
DESCRIPTION = "Questions about a small SQL database: count, filter, rank, group, join"
SLIPS = 3
"""Turns beyond the flawless ones: to look at the tables first, or to put a query right."""


def _example(prompt: str, answer: str, *steps: tuple[str, dict[str, str], str]) -> tuple[Message, ...]:
    turns: list[Message] = []
    for name, arguments, result in steps:
        turns += [assistant("", ToolCall(name=name, arguments=arguments)), tool_result(result, name)]
    return (user(prompt), *turns, assistant(answer))


LOOKING = _example(
    "Which city has the most robots?",
    "Oslo",
    ("list", {}, "robots, labs"),
    ("describe", {"table": "robots"}, "name, shape, speed, lab"),
    ("describe", {"table": "labs"}, "id, city"),
    (
        "query",
        {"sql": "select city from robots join labs on lab=id group by city order by count(*) desc limit 1"},
        "Oslo",
    ),
)
KNOWING = _example(
    "How many robots have speed over 30?",
    "4",
    ("query", {"sql": "select count(*) from robots where speed>30"}, "4"),
)


def build(config: GradedConfig) -> Env:
    """The environment with the chosen levels; only those that need a look at the tables are shown one."""
    chosen = config.chosen(NAME, GRADES).values()
    looks = any(grade.turns > 2 for grade in chosen)
    return Env(
        NAME,
        tasks=config.tasks(NAME, GRADES, "train"),
        heldout=config.tasks(NAME, GRADES, "heldout"),
        tools=TOOLS,
        rewards=[correct],
        agent=ReAct(max_turns=max(grade.turns for grade in chosen) + SLIPS),
        setup=opened,
        description=DESCRIPTION,
        examples=(LOOKING, KNOWING) if looks else (KNOWING,),
        oracle=oracle,
        hostile=hostile,
    )


ENTRY = CatalogEntry(name=NAME, description=DESCRIPTION, grades=GRADES, config=GradedConfig, build=build)
