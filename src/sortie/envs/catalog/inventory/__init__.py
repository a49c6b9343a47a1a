"""A shop with a depot: look up, reserve, move and order until the inventory is as asked."""

from __future__ import annotations

from sortie.agents.react import ReAct
from sortie.core.messages import Message, ToolCall, assistant, tool_result, user
from sortie.envs.catalog.inventory.rewards import as_asked
from sortie.envs.catalog.inventory.shop import opened
from sortie.envs.catalog.inventory.tasks import GRADES, hostile, oracle
from sortie.envs.catalog.inventory.tools import TOOLS
from sortie.envs.env import Env
from sortie.envs.graded import CatalogEntry, GradedConfig

NAME = "inventory"
DESCRIPTION = "A shop API with state: look up, reserve, move and order stock"


def _example(prompt: str, *calls: ToolCall) -> tuple[Message, ...]:
    turns = [message for call in calls for message in (assistant("", call), tool_result("ok", call.name))]
    return (user(prompt), *turns, assistant("Done."))


def _call(name: str, item: str, n: int) -> ToolCall:
    return ToolCall(name=name, arguments={"item": item, "n": n})


# The short one last, for the untrained model imitates what it read last. At temperature 1 it then gets the first call
# of levels 1 and 2 right in 11 of 32 draws and ends after its "ok" in 31 of 32; the other way round in 6 and 18.
EXAMPLES = (
    _example(
        "Move 5 bikes to the shop, then reserve 3 tables.", _call("move", "bikes", 5), _call("reserve", "tables", 3)
    ),
    _example("Order 30 tables.", _call("order", "tables", 30)),
)


def build(config: GradedConfig) -> Env:
    """The environment with the chosen levels."""
    turns = max(grade.turns for grade in config.chosen(NAME, GRADES).values())
    return Env(
        NAME,
        tasks=config.tasks(NAME, GRADES, "train"),
        heldout=config.tasks(NAME, GRADES, "heldout"),
        tools=TOOLS,
        rewards=[as_asked],
        agent=ReAct(max_turns=turns + 1),
        setup=opened,
        description=DESCRIPTION,
        examples=EXAMPLES,
        oracle=oracle,
        hostile=hostile,
    )


ENTRY = CatalogEntry(name=NAME, description=DESCRIPTION, grades=GRADES, config=GradedConfig, build=build)
