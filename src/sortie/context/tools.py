"""What the context layer knows of tools: a name, a schema and a call that always comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sortie.core.tool_schema import ToolSchema

if TYPE_CHECKING:
    from sortie.context.run_context import RunContext


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool call came to, as the model will read it."""

    text: str
    error: bool = False


class ToolLike(Protocol):
    """Anything a model may call."""

    @property
    def name(self) -> str:
        """The name the model calls it by."""
        ...

    @property
    def schema(self) -> ToolSchema:
        """What the model is told about it."""
        ...

    async def call(self, ctx: RunContext, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Run it. What the model can put right comes back as an outcome; only infrastructure errors are raised."""
        ...
