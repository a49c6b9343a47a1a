"""Arithmetic with a calculator: from one product to chains of results that build on each other."""

from __future__ import annotations

from sortie.agents.react import ReAct
from sortie.core.messages import Message, ToolCall, assistant, tool_result, user
from sortie.envs.catalog.arithmetic.rewards import correct
from sortie.envs.catalog.arithmetic.tasks import GRADES, oracle
from sortie.envs.catalog.arithmetic.tools import calculator, evaluate
from sortie.envs.env import Env
from sortie.envs.graded import CatalogEntry, GradedConfig

NAME = "arithmetic"
DESCRIPTION = "Sums and products that need a calculator, in one step or several"


def _example(expression: str) -> tuple[Message, ...]:
    value = evaluate(expression)
    return (
        user(f"What is {expression}?"),
        assistant("", ToolCall(name="calculator", arguments={"expression": expression})),
        tool_result(value, "calculator"),
        assistant(value),
    )


# Two, because with one the untrained model never gets a call right (0 of 32 drawn at temperature 1).
EXAMPLES = (_example("31*67"), _example("845-26*19"))


def build(config: GradedConfig) -> Env:
    """The environment with the chosen levels."""
    turns = max(grade.turns for grade in config.chosen(NAME, GRADES).values())
    return Env(
        NAME,
        tasks=config.tasks(NAME, GRADES, "train"),
        heldout=config.tasks(NAME, GRADES, "heldout"),
        tools=[calculator],
        rewards=[correct],
        agent=ReAct(max_turns=turns + 1),
        description=DESCRIPTION,
        examples=EXAMPLES,
        oracle=oracle,
    )


ENTRY = CatalogEntry(name=NAME, description=DESCRIPTION, grades=GRADES, config=GradedConfig, build=build)
