"""Runs side by side: the settings that differ, and what came of them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sortie.core.run_folder import RunFolder

ABSENT = "-"
"""Stands where a run has no such setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One entry per run in each mapping, in the order the runs were given."""

    settings: dict[str, dict[str, Any]]
    """Dotted setting -> run -> value; only those that differ."""
    results: dict[str, dict[str, Any]]
    """Run -> status, steps, wall_s, before and after: scores by environment, or None."""

    def to_dict(self) -> dict[str, Any]:
        """Both, for JSON."""
        return {"settings": self.settings, "results": self.results}


def compare(folders: Sequence[RunFolder]) -> Comparison:
    """Read off the folders.

    Raises: UsageError if a run was stopped before its settings were written.
    """
    flat = {folder.name: flattened(tomllib.loads(folder.config_text())) for folder in folders}
    keys = list(dict.fromkeys(key for settings in flat.values() for key in settings))
    settings = {key: {name: values.get(key, ABSENT) for name, values in flat.items()} for key in keys}
    differing = {key: row for key, row in settings.items() if any(v != next(iter(row.values())) for v in row.values())}
    return Comparison(settings=differing, results={folder.name: _result(folder) for folder in folders})


def flattened(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as `a.b` keys. An environment goes by its name, not by its place: `env.arithmetic.levels`."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{name}.")
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            for number, item in enumerate(value):
                inner = f"{name}.{item.get('name', number)}."
                flat |= {inner.rstrip("."): "yes"} | flattened({k: v for k, v in item.items() if k != "name"}, inner)
        else:
            flat[name] = value
    return flat


def _result(folder: RunFolder) -> dict[str, Any]:
    info, summary = folder.info(), folder.summary() or {}
    measured = {event["phase"]: event for event in folder.events() if event["kind"] == "evaluation"}
    return {
        "status": info.status,
        "steps": info.steps,
        "wall_s": summary.get("wall_s"),
        "before": summary.get("before") or _scores(measured.get("before")),
        "after": summary.get("after") or _scores(measured.get("after")),
    }


def _scores(event: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The scores of an evaluation of a run that has not finished."""
    return {key: value for key, value in event.items() if isinstance(value, dict)} if event else None
