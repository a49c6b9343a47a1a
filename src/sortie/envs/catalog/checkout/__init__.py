"""A price list, a till and a money changer: what one call returns is what the next one takes, several calls a turn."""

from __future__ import annotations

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


def _turn(*steps: tuple[str, dict[str, str | int], str]) -> tuple[Message, ...]:
    calls = (ToolCall(name=name, arguments=arguments) for name, arguments, _ in steps)
    return (assistant("", *calls), *(tool_result(result, name) for name, _, result in steps))


EXAMPLES = (
    (
        user("What do 2 sofas and 3 vases cost in DKK?"),
        *_turn(("price", {"item": "sofas"}, "40 SEK"), ("price", {"item": "vases"}, "7 DKK")),
        *_turn(
            ("times", {"amount": "40 SEK", "n": 2}, "80 SEK"),
            ("times", {"amount": "7 DKK", "n": 3}, "21 DKK"),
        ),
        *_turn(("change", {"amount": "80 SEK", "to": "DKK"}, "64 DKK")),
        *_turn(("plus", {"a": "64 DKK", "b": "21 DKK"}, "85 DKK")),
        assistant("85 DKK"),
    ),
)


def build(config: GradedConfig) -> Env:
    """The environment with the chosen levels."""
    turns = max(grade.turns for grade in config.chosen(NAME, GRADES).values())
    return Env(
        NAME,
        tasks=config.tasks(NAME, GRADES, "train"),
        heldout=config.tasks(NAME, GRADES, "heldout"),
        tools=TOOLS,
        rewards=[correct],
        agent=ReAct(max_turns=turns + SLIPS),
        description=DESCRIPTION,
        examples=EXAMPLES,
        oracle=oracle,
        hostile=hostile,
    )


ENTRY = CatalogEntry(name=NAME, description=DESCRIPTION, grades=GRADES, config=GradedConfig, build=build)
