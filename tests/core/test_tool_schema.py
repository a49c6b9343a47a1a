"""What the model is told about a tool."""

from __future__ import annotations

from sortie.core.tool_schema import ToolSchema

SCHEMA = ToolSchema(
    name="move",
    description="Move stock.",
    parameters={
        "type": "object",
        "properties": {
            "item": {"type": "string"},
            "to": {"enum": ["a", "b"]},
            "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["item", "to"],
    },
)


def test_the_signature_is_one_short_line() -> None:
    assert SCHEMA.signature() == "move(item: string, to: a|b, count: integer|null = optional)"


def test_the_openai_shape_holds_everything() -> None:
    shape = SCHEMA.to_openai()
    assert shape["type"] == "function"
    assert shape["function"] == {
        "name": "move",
        "description": "Move stock.",
        "parameters": SCHEMA.parameters,
    }
