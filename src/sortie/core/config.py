"""Configuration: strict pydantic models beside the classes they build, read from TOML, with dotted overrides.

An unknown or ineffective key is an error at load. None survives a round trip through TOML: it is written as `"none"`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from sortie.core.errors import ConfigError

NONE = "none"
"""How TOML, which has no null, spells None."""


class Config(BaseModel):
    """Base of every configuration: frozen, no unknown keys, documented by its fields' docstrings."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, validate_default=True)

    def to_toml(self) -> str:
        """The complete configuration, defaults included."""
        import tomli_w

        return tomli_w.dumps(_none_to_word(self.model_dump(mode="json")))

    @classmethod
    def from_toml(cls, text: str, overrides: Sequence[str] = (), *, source: str = "configuration") -> Self:
        """Read TOML text, apply `a.b=value` overrides, validate.

        Raises: ConfigError with one line per problem, naming the key and the value.
        """
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{source} is not valid TOML: {error}") from None
        for override in overrides:
            apply_override(data, override)
        return parse(cls, _word_to_none(data), source=source)


C = TypeVar("C", bound=BaseModel)


def parse(cls: type[C], data: Any, *, source: str) -> C:
    """Validate `data` as `cls`, with errors a user can act on.

    Raises: ConfigError with one line per problem.
    """
    try:
        return cls.model_validate(data)
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(cls, source, problem) for problem in error.errors())) from None


def load(cls: type[C], path: Path, overrides: Sequence[str] = ()) -> C:
    """Read a TOML file as `cls`.

    Raises: ConfigError if the file is missing, malformed or invalid.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    assert issubclass(cls, Config)
    return cls.from_toml(text, overrides, source=str(path))


def apply_override(data: dict[str, Any], override: str) -> None:
    """Set one dotted key of `data` from `a.b=value`; the value is TOML, or a bare string. `env.0.levels` reaches lists.

    Raises: ConfigError if the text has no `=` or the path crosses a plain value.
    """
    key, found, text = override.partition("=")
    if not found or not key.strip():
        raise ConfigError(f"override {override!r} must read key=value, like steps=4")
    at: Any = data
    *path, last = key.strip().split(".")
    for part in path:
        at = _step(at, part, override)
    if isinstance(at, list):
        at[_index(at, last, override)] = _value(text)
    elif isinstance(at, dict):
        at[last] = _value(text)
    else:
        raise ConfigError(f"override {override!r}: {'.'.join(path)} is a plain value, not a section")


def _step(at: Any, part: str, override: str) -> Any:
    if isinstance(at, list):
        return at[_index(at, part, override)]
    if isinstance(at, dict):
        return at.setdefault(part, {})
    raise ConfigError(f"override {override!r}: {part!r} is below a plain value")


def _index(at: list[Any], part: str, override: str) -> int:
    if part.isdigit() and int(part) < len(at):
        return int(part)
    raise ConfigError(f"override {override!r}: {part!r} must be an index below {len(at)}")


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def _explain(cls: type[BaseModel], source: str, problem: Any) -> str:
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{source}: unknown option {where!r}{_nearest(cls, problem['loc'])}"
    message = problem["msg"].removeprefix("Value error, ")
    given = "" if problem["type"] == "missing" or not where else f", got {problem['input']!r}"
    return f"{source}: {where + ': ' if where else ''}{message}{given}"


def _nearest(cls: type[BaseModel], loc: tuple[Any, ...]) -> str:
    """Names the section's real options, the likeliest first."""
    import difflib

    at: Any = cls
    for part in loc[:-1]:
        field = at.model_fields.get(part) if isinstance(at, type) and issubclass(at, BaseModel) else None
        at = field.annotation if field else None
    if not (isinstance(at, type) and issubclass(at, BaseModel)):
        return ""
    names = list(at.model_fields)
    close = difflib.get_close_matches(str(loc[-1]), names, n=1)
    return f": did you mean {close[0]!r}?" if close else f"; known: {', '.join(names)}"


def _none_to_word(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _none_to_word(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_none_to_word(v) for v in value]
    return NONE if value is None else value


def _word_to_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _word_to_none(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_word_to_none(v) for v in value]
    return None if value == NONE else value
