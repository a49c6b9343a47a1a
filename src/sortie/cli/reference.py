"""The help texts as one page: `python -m sortie.cli.reference > docs/cli.md`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from sortie.cli.main import cli

WIDTH = 100


def page() -> str:
    """Markdown with the help of every command, groups before what is in them."""
    parts = ["# Command line\n\nWritten by `make docs`; a test keeps it current.\n"]
    for context in contexts(cli, "sortie"):
        # Not the terminal's width, and trailing blanks gone.
        text = "\n".join(line.rstrip() for line in context.get_help().splitlines())
        parts.append(f"## {context.command_path}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def contexts(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[click.Context]:
    """A context for the command and for everything below it, as an invocation would have it."""
    settings = {**command.context_settings, "terminal_width": WIDTH}
    context = click.Context(command, parent, info_name=name, **settings)
    yield context
    if isinstance(command, click.Group):
        for inner in sorted(command.commands):
            yield from contexts(command.commands[inner], inner, context)


if __name__ == "__main__":
    click.echo(page(), nl=False)
