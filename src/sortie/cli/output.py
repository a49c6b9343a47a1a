"""How results are printed: a table for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def print_json(value: Any) -> None:
    """One JSON document on stdout; never NaN."""
    from sortie.core.files import to_json

    click.echo(to_json(value, indent=2))


def print_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, empty: str) -> None:
    """Columns as wide as their widest cell; `empty` if there are no rows."""
    for line in table_lines(rows, columns) or [empty]:
        click.echo(line)


def table_lines(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> list[str]:
    """The same as lines, none for no rows; without `columns`, those of all rows as they first occur."""
    if not rows:
        return []
    if columns is None:
        columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [list(columns)] + [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]


def score_table(scores: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of environment, mean, interval and n; `pooled` comes last."""
    names = sorted(scores, key=lambda name: (name == "pooled", name))
    return [
        {
            "environment": name,
            "success": scores[name]["mean"],
            "95% interval": f"{_cell(scores[name]['low'])} to {_cell(scores[name]['high'])}",
            "n": scores[name]["n"],
        }
        for name in names
    ]


SCORE_COLUMNS = ("environment", "success", "95% interval", "n")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return "-" if value != value else f"{value:.3f}"
    return str(value)
