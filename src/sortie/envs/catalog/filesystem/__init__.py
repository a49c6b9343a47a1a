"""Files to write, move and delete, some of them only to be found by reading."""

from __future__ import annotations

from typing import Literal

from sortie.agents.react import ReAct
from sortie.core.messages import ToolCall, assistant, tool_result, user
from sortie.envs.catalog.filesystem.places import SANDBOX, in_memory, in_sandbox
from sortie.envs.catalog.filesystem.rewards import as_asked
from sortie.envs.catalog.filesystem.tasks import GRADES, hostile, oracle
from sortie.envs.catalog.filesystem.tools import TOOLS
from sortie.envs.env import Env
from sortie.envs.graded import CatalogEntry, GradedConfig

NAME = "filesystem"
DESCRIPTION = "Changes in a working directory: list, read, write, move and delete files"


class FilesystemConfig(GradedConfig):
    """Options of the file system environment."""

    place: Literal["sandbox", "memory"] = "sandbox"
    """Where the files are: in a sandbox of their own, or in memory, which is faster and behaves alike."""


# In directories that no task has.
EXAMPLE = (
    user("Move car/oil to van/gas, then delete car/map."),
    assistant("", ToolCall(name="mv", arguments={"path": "car/oil", "to": "van/gas"})),
    tool_result("ok", "mv"),
    assistant("", ToolCall(name="rm", arguments={"path": "car/map"})),
    tool_result("ok", "rm"),
    assistant("Done."),
)


def build(config: GradedConfig) -> Env:
    """The environment with the chosen levels."""
    turns = max(grade.turns for grade in config.chosen(NAME, GRADES).values())
    sandboxed = isinstance(config, FilesystemConfig) and config.place == "sandbox"
    return Env(
        NAME,
        tasks=config.tasks(NAME, GRADES, "train"),
        heldout=config.tasks(NAME, GRADES, "heldout"),
        tools=TOOLS,
        rewards=[as_asked],
        agent=ReAct(max_turns=turns + 1),
        resources=[SANDBOX] if sandboxed else [],
        setup=in_sandbox if sandboxed else in_memory,
        description=DESCRIPTION,
        examples=(EXAMPLE,),
        oracle=oracle,
        hostile=hostile,
    )


ENTRY = CatalogEntry(name=NAME, description=DESCRIPTION, grades=GRADES, config=FilesystemConfig, build=build)
