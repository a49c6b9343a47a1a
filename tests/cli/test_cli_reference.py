"""The help texts in the docs are those of the program."""

from __future__ import annotations

from pathlib import Path

from sortie.cli.main import cli
from sortie.cli.reference import contexts, page

PAGE = Path(__file__).parent.parent.parent / "docs" / "cli.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run `make docs`"


def test_the_page_holds_every_command() -> None:
    names = [context.command_path for context in contexts(cli, "sortie")]
    assert {"sortie train", "sortie runs list", "sortie model get"} <= set(names)
    assert all(f"\n## {name}\n" in page() for name in names)
