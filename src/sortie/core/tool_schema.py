"""What the model is told about a tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """Name, one-paragraph description, and the JSON schema of the arguments (an object)."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    def to_openai(self) -> dict[str, Any]:
        """The schema in the OpenAI function shape, which chat templates expect."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}

    def signature(self) -> str:
        """The call as one line, `name(arg: type, ...)`, for prompts that must stay short."""
        properties: Mapping[str, Any] = self.parameters.get("properties", {})
        required = set(self.parameters.get("required", ()))
        parts = [
            f"{key}: {_type_word(value)}" + ("" if key in required else " = optional")
            for key, value in properties.items()
        ]
        return f"{self.name}({', '.join(parts)})"


def _type_word(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "|".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return "|".join(_type_word(option) for option in schema["anyOf"])
    return str(schema.get("type", "any"))
