"""A house of rooms, boxes and things: find them, carry them, put them where they belong."""

from __future__ import annotations

from sortie.agents.react import ReAct
from sortie.core.messages import Message, ToolCall, assistant, tool_result, user
from sortie.envs.catalog.text_world.rewards import progress
from sortie.envs.catalog.text_world.tasks import GRADES, hostile, oracle
from sortie.envs.catalog.text_world.tools import TOOLS, opened
from sortie.envs.env import Env
from sortie.envs.graded import CatalogEntry, GradedConfig

NAME = "text_world"
DESCRIPTION = "Rooms, boxes and things: walk, search, carry and put in place"
SLIPS = 3
"""Turns beyond the flawless ones, for wrong ways."""
NEAREST = 3
"""Most turns within one room."""


def _example(prompt: str, *steps: tuple[str, dict[str, str], str]) -> tuple[Message, ...]:
    turns: list[Message] = []
    for name, arguments, result in steps:
        turns += [assistant("", ToolCall(name=name, arguments=arguments)), tool_result(result, name)]
    return (user(prompt), *turns)


_TAKE = ("take", {"item": "spade"}, "ok")
_OPEN = ("open", {"box": "trunk"}, "trunk (empty)")
_PUT = ("put", {"item": "spade", "box": "trunk"}, "all done")

NEAR = _example("shed: spade, trunk (closed)\nPut the spade in the trunk.", _TAKE, _OPEN, _PUT)
FAR = _example(
    "shed: trunk (closed). Exits: barn\nPut the spade in the trunk.",
    ("go", {"room": "barn"}, "barn: spade. Exits: shed"),
    _TAKE,
    ("go", {"room": "shed"}, "shed: trunk (closed). Exits: barn"),
    _OPEN,
    _PUT,
)


def build(config: GradedConfig) -> Env:
    """The environment with the chosen levels; where all is in one room, so is the example."""
    turns = max(grade.turns for grade in config.chosen(NAME, GRADES).values())
    return Env(
        NAME,
        tasks=config.tasks(NAME, GRADES, "train"),
        heldout=config.tasks(NAME, GRADES, "heldout"),
        tools=TOOLS,
        rewards=[progress],
        agent=ReAct(max_turns=turns + SLIPS),
        setup=opened,
        description=DESCRIPTION,
        examples=(FAR if turns > NEAREST else NEAR,),
        oracle=oracle,
        hostile=hostile,
    )


ENTRY = CatalogEntry(name=NAME, description=DESCRIPTION, grades=GRADES, config=GradedConfig, build=build)
