"""A price list, a till and a money changer: what one call returns is what the next one takes, several calls a turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sortie.agents.react import ReAct
from sortie.core.messages import Message, ToolCall, assistant, tool_result, user
from sortie.envs.catalog.checkout.rewards import correct
from sortie.envs.catalog.checkout.tasks import GRADES, hostile, oracle
from sortie.envs.catalog.checkout.tools import TOOLS
from sortie.envs.env import Env
from sortie.envs.graded import CatalogEntry, GradedConfig

NAME = "checkout"
DESCRIPTION = "Prices, sums and currencies: results of calls feed other calls, several in one turn"
SLIPS = 2
"""Turns beyond the flawless ones, for a refused call or for one call at a time."""
ONE = 4
"""The last level with one item."""


def _turn(*steps: tuple[str, Mapping[str, Any], str]) -> tuple[Message, ...]:
    calls = (ToolCall(name=name, arguments=arguments) for name, arguments, _ in steps)
    return (assistant("", *calls), *(tool_result(result, name) for name, _, result in steps))


_SOFAS = ("price", {"item": "sofas"}, "40 SEK")
_TWO_SOFAS = ("times", {"amount": "40 SEK", "n": 2}, "80 SEK")
_CHANGED = _turn(("change", {"amount": "80 SEK", "to": "DKK"}, "64 DKK"))

ONE_ITEM = (
    user("What do 2 sofas cost in DKK?"),
    *_turn(_SOFAS),
    *_turn(_TWO_SOFAS),
    *_CHANGED,
    assistant("64 DKK"),
)
TWO_ITEMS = (
    user("What do 2 sofas and 3 vases cost in DKK?"),
    *_turn(_SOFAS, ("price", {"item": "vases"}, "7 DKK")),
    *_turn(_TWO_SOFAS, ("times", {"amount": "7 DKK", "n": 3}, "21 DKK")),
    *_CHANGED,
    *_turn(("plus", {"a": "64 DKK", "b": "21 DKK"}, "85 DKK")),
    assistant("85 DKK"),
)


def build(config: GradedConfig) -> Env:
    """The environment with the chosen levels; where every bill has one item, so has the example."""
    chosen = config.chosen(NAME, GRADES)
    return Env(
        NAME,
        tasks=config.tasks(NAME, GRADES, "train"),
        heldout=config.tasks(NAME, GRADES, "heldout"),
        tools=TOOLS,
        rewards=[correct],
        agent=ReAct(max_turns=max(grade.turns for grade in chosen.values()) + SLIPS),
        description=DESCRIPTION,
        examples=(TWO_ITEMS if max(chosen) > ONE else ONE_ITEM,),
        oracle=oracle,
        hostile=hostile,
    )


ENTRY = CatalogEntry(name=NAME, description=DESCRIPTION, grades=GRADES, config=GradedConfig, build=build)
