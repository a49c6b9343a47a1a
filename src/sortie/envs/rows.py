"""Rows of data into tasks: JSON lines, dicts, Task objects.

Every row is read and checked before the first is used; each one that is wrong gets a line naming where it stands.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sortie.agents.reward import RESERVED, Reward
from sortie.core.errors import ConfigError
from sortie.core.messages import Message, message_from_dict
from sortie.core.task import Split, Task, TaskSet

TaskSource = (
    str | Path | Sequence[Task | Mapping[str, Any]] | Callable[[], Iterable[Task | Mapping[str, Any]]] | TaskSet
)
"""Where tasks come from: a .jsonl file, a list of rows, a function that returns rows, or a TaskSet."""

SHOWN = 10
"""Faulty rows that one error lists."""


@dataclass(frozen=True, slots=True)
class Row:
    """A task, where it stands, and the split it asks for."""

    task: Task
    where: str
    split: Split | None


class _Turn(BaseModel):
    model_config = ConfigDict(extra="forbid")
    role: Literal["system", "user", "assistant", "tool"]
    content: str
    name: str | None = None


class _Shape(BaseModel):
    """The keys with a meaning; every other key of a row goes to `Task.data`."""

    model_config = ConfigDict(extra="allow")
    prompt: str | list[_Turn] = Field(min_length=1)
    id: str = Field("", coerce_numbers_to_str=True)
    level: int | None = None
    split: Split | None = None
    env: str | None = None


def read_rows(source: TaskSource, env: str, rewards: Iterable[Reward[Any, Any]] = ()) -> list[Row]:
    """All rows of a source. A row that repeats an earlier one word for word is the same task and is kept once.

    Raises: ConfigError with one line per faulty row, or if the source itself cannot be read.
    """
    wanted = {reward.name: _asked(reward) for reward in rewards}
    faults: list[str] = []
    rows: dict[str, Row] = {}
    for where, raw in _entries(source):
        try:
            row = _row(raw, where, env, wanted)
            first = rows.setdefault(row.task.key, row)
            if first is not row and first.task.content_hash() != row.task.content_hash():
                raise ValueError(f"id {row.task.id!r} is already that of {first.where}")
        except ValueError as fault:
            faults.append(f"{where}: {fault}")
    if faults:
        more = [f"and {len(faults) - SHOWN} more faulty rows"] if len(faults) > SHOWN else []
        raise ConfigError("\n".join(faults[:SHOWN] + more))
    if not rows:
        raise ConfigError(f"environment {env!r} has no tasks: {_label(source)} is empty")
    return list(rows.values())


def _entries(source: TaskSource) -> Iterator[tuple[str, Any]]:
    """Rows as they were given, each with its place; a line that is not JSON comes as the error it raised."""
    if isinstance(source, str | Path):
        yield from _lines(Path(source))
        return
    label = _label(source)
    items: Any = source() if callable(source) else source
    if isinstance(items, str | bytes | Mapping) or not hasattr(items, "__iter__"):
        raise ConfigError(f"tasks must be a .jsonl path, rows, or a function returning rows; {label} is {items!r:.80}")
    for number, item in enumerate(items):
        yield f"{label}[{number}]", item


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    if path.suffix != ".jsonl":
        raise ConfigError(f"cannot read tasks from {path}: give a .jsonl file, one JSON object a line")
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield f"{path}:{number}", _decoded(line)
    except OSError as error:
        raise ConfigError(f"cannot read tasks from {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read tasks from {path}: not UTF-8 ({error.reason})") from None


def _decoded(line: str) -> Any:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    try:
        return json.loads(line, parse_constant=refuse)
    except json.JSONDecodeError as error:
        return ValueError(f"not JSON: {error.msg} at column {error.colno}")
    except ValueError as error:
        return error


def _row(raw: Any, where: str, env: str, wanted: Mapping[str, list[str]]) -> Row:
    """Raises: ValueError saying what is wrong with the row."""
    if isinstance(raw, ValueError):
        raise raw
    if isinstance(raw, Task):
        task, split = raw, None
    elif isinstance(raw, Mapping):
        task, split = _from_mapping(raw, env)
    else:
        raise ValueError(f"a row is an object with a prompt, got {raw!r:.60}")
    if task.env != env:
        raise ValueError(f"belongs to environment {task.env!r}, not {env!r}")
    for reward, names in wanted.items():
        missing = [name for name in names if name not in task.data]
        if missing:
            raise ValueError(f"reward {reward!r} asks for {missing[0]!r}, which this row does not have")
    return Row(task, where, split)


def _from_mapping(raw: Mapping[str, Any], env: str) -> tuple[Task, Split | None]:
    try:
        shape = _Shape.model_validate(dict(raw))
    except ValidationError as error:
        raise ValueError("; ".join(_explain(problem) for problem in error.errors())) from None
    data = {key: value for key, value in raw.items() if key not in _Shape.model_fields}
    task = Task(env=shape.env or env, prompt=_prompt(shape.prompt), data=data, level=shape.level, id=shape.id)
    return task, shape.split


def _prompt(prompt: str | list[_Turn]) -> str | tuple[Message, ...]:
    if isinstance(prompt, str):
        return prompt
    return tuple(message_from_dict(turn.model_dump(exclude_none=True)) for turn in prompt)


def _explain(problem: Any) -> str:
    where = ".".join(str(part) for part in problem["loc"] if part not in ("str", "list[_Turn]"))
    if problem["type"] == "missing":
        return f"{where!r} is missing"
    return f"{where!r}: {problem['msg']}, got {problem['input']!r:.60}"


def _asked(reward: Reward[Any, Any]) -> list[str]:
    """Keys of task.data that a reward cannot do without."""
    parameters = inspect.signature(reward).parameters.values()
    return [p.name for p in parameters if p.name not in RESERVED and p.default is p.empty]


def _label(source: TaskSource) -> str:
    if isinstance(source, str | Path):
        return str(source)
    return f"{getattr(source, '__name__', 'tasks')}()" if callable(source) else "tasks"
