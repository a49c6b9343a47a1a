"""A function to write, judged by hidden tests that never enter the sandbox in which it runs."""

from __future__ import annotations

from sortie.agents.react import ReAct
from sortie.core.messages import ToolCall, assistant, tool_result, user
from sortie.envs.catalog.python_tests.judge import SANDBOX, passes
from sortie.envs.catalog.python_tests.tasks import GRADES, hostile, oracle
from sortie.envs.catalog.python_tests.tools import TOOLS, opened
from sortie.envs.env import Env
from sortie.envs.graded import CatalogEntry, GradedConfig

NAME = "python_tests"
DESCRIPTION = "Python functions to write and try in a sandbox, judged by hidden tests"

# A function that no task asks for.
EXAMPLE = (
    user("f(x): x cubed."),
    assistant("", ToolCall(name="write", arguments={"code": "def f(x):\n return x**3"})),
    tool_result("ok", "write"),
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
        rewards=[passes],
        agent=ReAct(max_turns=turns + 2),
        resources=[SANDBOX],
        setup=opened,
        description=DESCRIPTION,
        examples=(EXAMPLE,),
        oracle=oracle,
        hostile=hostile,
    )


ENTRY = CatalogEntry(name=NAME, description=DESCRIPTION, grades=GRADES, config=GradedConfig, build=build)
