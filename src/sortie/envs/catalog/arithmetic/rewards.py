"""Right or wrong."""

from __future__ import annotations

import re
from fractions import Fraction

from sortie.agents.reward import reward

_NUMBER = re.compile(r"(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?")


@reward(inline=True)
def correct(answer: str | None, result: str) -> float:
    """1 if the last number of the agent's answer is the result, else 0."""
    return float(last_number(answer or "") == Fraction(result))


def last_number(text: str) -> Fraction | None:
    """The last number written in a text, thousands separators allowed; a hyphen right after a digit is no sign."""
    found = _NUMBER.findall(text)
    return Fraction(found[-1].replace(",", "")) if found else None
