"""A plain typed function as a tool schema and an argument checker.

The signature gives the types, the docstring the descriptions (any style docstring_parser reads). `ctx` is injected by
the caller and hidden from the model.
"""

from __future__ import annotations

import inspect
import reprlib
import typing
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from sortie.core.errors import ConfigError
from sortie.core.tool_schema import ToolSchema

CONTEXT = "ctx"
"""The parameter that receives the RunContext."""

_LITERAL_KEYS = ("default", "enum", "const", "examples")


class Arguments:
    """The arguments of one function: their schema, and how raw values become calls."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        """Raises: ConfigError, in one line, for a parameter that a model could not fill in."""
        where = f"tool {name!r} ({_place(function)})"
        parameters = inspect.signature(function).parameters
        doc = docstring_parser.parse(inspect.getdoc(function) or "")
        described = {p.arg_name: " ".join((p.description or "").split()) for p in doc.params}
        self.takes_context = CONTEXT in parameters
        self.names = [p for p in parameters if p != CONTEXT]
        fields = {
            # Neutral field names: an argument called `json` or `copy` would shadow a method of the pydantic model.
            f"arg_{i}": _field(function, parameters[key], described.get(key), where)
            for i, key in enumerate(self.names)
        }
        config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)
        self._model: type[BaseModel] = create_model("Arguments", __config__=config, **fields)
        schema = _without_titles(self._model.model_json_schema(by_alias=True))
        schema.pop("additionalProperties", None)
        schema.setdefault("properties", {})
        description = "\n\n".join(part for part in (doc.short_description, doc.long_description) if part)
        self.schema = ToolSchema(name=name, description=description, parameters=schema)

    def check(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Typed keyword arguments; "3" becomes 3 where an integer is wanted. Absent ones keep the function's defaults.

        Raises: ValueError saying what is wrong with each argument.
        """
        try:
            model = self._model.model_validate(dict(raw))
        except ValidationError as error:
            raise ValueError("; ".join(map(_explain, error.errors()))) from None
        given = model.model_fields_set
        return {key: getattr(model, f"arg_{i}") for i, key in enumerate(self.names) if f"arg_{i}" in given}


def _field(function: Callable[..., Any], parameter: inspect.Parameter, text: str | None, where: str) -> Any:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise ConfigError(f"{where}: *{name} cannot be described to a model; name each parameter")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ConfigError(f"{where}: parameter {name!r} is positional-only; models pass arguments by name")
    if parameter.annotation is parameter.empty:
        raise ConfigError(f"{where}: parameter {name!r} has no type; annotate it, like {name}: str")
    try:
        shim = SimpleNamespace(__annotations__={name: parameter.annotation})
        scope = dict(inspect.getclosurevars(function).nonlocals)
        hints = typing.get_type_hints(shim, getattr(function, "__globals__", {}), scope, include_extras=True)
        default = ... if parameter.default is parameter.empty else parameter.default
        info = Field(default, alias=name, description=text or None)
        create_model("Probe", **{"arg": (hints[name], info)}).model_json_schema()  # type: ignore[call-overload]
    except Exception as error:  # noqa: BLE001  # annotations can fail in any way; the author needs one line
        raise ConfigError(f"{where}: parameter {name!r} has a type no schema can be made of: {_line(error)}") from None
    return (hints[name], info)


def _explain(problem: Any) -> str:
    name, *inner = problem["loc"] or ("arguments",)
    where = ".".join(map(str, (name, *inner)))
    if problem["type"] == "missing":
        return f"argument {where!r} is missing"
    if problem["type"] == "extra_forbidden":
        return f"there is no argument {where!r}"
    return f"argument {where!r}: {problem['msg']}, got {reprlib.repr(problem['input'])}"


def _without_titles(schema: Any) -> Any:
    """Drops the titles pydantic invents; a property that is called title stays (its value is a schema, not text)."""
    if isinstance(schema, dict):
        return {
            key: value if key in _LITERAL_KEYS else _without_titles(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_without_titles(item) for item in schema] if isinstance(schema, list) else schema


def _place(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else "no source"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
