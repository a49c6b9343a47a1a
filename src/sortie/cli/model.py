"""`sortie model`."""

from __future__ import annotations

from typing import Any

import click

from sortie.cli.output import json_option, print_json, print_table


@click.group()
def model() -> None:
    """Models that can be trained."""


@model.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the models Sortie knows by name. Any folder in Hugging Face layout and any hub id work too.

    \b
    Example:
      sortie model list
    """
    from sortie import models

    rows = [_to_dict(info) for info in models.list_models()]
    if as_json:
        print_json(rows)
    else:
        print_table(rows, ("name", "family", "parameters", "licence", "here"), empty="no models")


@model.command()
@click.argument("name")
@json_option
def get(name: str, as_json: bool) -> None:
    """Fetch a model into the cache, or check that it is whole.

    \b
    Example:
      sortie model get smollm2-135m
    """
    from sortie import models

    folder = models.get(name, progress=lambda line: click.echo(line, err=True))
    if as_json:
        print_json({"name": name, "folder": str(folder)})
    else:
        click.echo(folder)


@model.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show a model's sizes, source and place, without fetching it.

    \b
    Example:
      sortie model show smollm2-135m
    """
    from sortie import models

    facts = _to_dict(models.show(name))
    if as_json:
        print_json(facts)
        return
    sizes = facts.pop("facts")
    keys = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "max_position_embeddings")
    for key, value in [*facts.items(), *((key, sizes[key]) for key in keys if key in sizes)]:
        click.echo(f"{key.replace('_', ' '):24}{value}")


def _to_dict(info: Any) -> dict[str, Any]:
    return {
        "name": info.name,
        "family": info.family,
        "parameters": info.parameters,
        "licence": info.licence,
        "source": info.source,
        "here": "yes" if info.cached else "no",
        "folder": str(info.folder) if info.folder else None,
        "facts": info.facts,
    }
