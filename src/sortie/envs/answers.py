"""Answers compared as they are written."""

from __future__ import annotations


def same(answer: str | None, wanted: str) -> bool:
    """Whether an answer is the wanted text and nothing else, so that naming every candidate earns nothing.

    Case, blanks around it and a full stop behind it make no difference.
    """
    return (answer or "").strip().removesuffix(".").casefold() == wanted.casefold()
