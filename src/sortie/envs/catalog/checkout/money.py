"""Amounts of money as text, like `12.5 EUR`, and exact arithmetic on them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sortie.core.errors import ToolError

DECIMALS = 6
"""Decimals shown; more are rounded away."""

MOST = 10**9
"""Amounts above this are refused."""

_AMOUNT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ([A-Z]{3})")


@dataclass(frozen=True, slots=True)
class Money:
    """An amount and its currency; `str` spells it the short way."""

    amount: Fraction
    currency: str

    @classmethod
    def of(cls, text: str) -> Money:
        """Raises: ToolError saying how an amount is written."""
        found = _AMOUNT.fullmatch(text.strip())
        if found is None:
            raise ToolError(f"{text.strip()[:20]!r} is no amount; write it like 12 EUR")
        return cls(Fraction(found[1]), found[2])

    def __str__(self) -> str:
        whole, part = divmod(round(self.amount * 10**DECIMALS), 10**DECIMALS)
        return f"{whole}.{part:0{DECIMALS}d}".rstrip("0").rstrip(".") + f" {self.currency}"

    def times(self, n: int) -> Money:
        """Raises: ToolError if n is below 1 or the result too large."""
        if n < 1:
            raise ToolError("n must be at least 1")
        return _checked(Money(self.amount * n, self.currency))

    def plus(self, other: Money) -> Money:
        """Raises: ToolError if the currencies differ."""
        if other.currency != self.currency:
            raise ToolError(f"{self.currency} and {other.currency} differ; change one first")
        return _checked(Money(self.amount + other.amount, self.currency))

    def change(self, to: str, worth: Mapping[str, int]) -> Money:
        """The same in another currency; `worth` is what one unit of each is worth, in a common measure.

        Raises: ToolError naming the currencies there are.
        """
        for currency in (self.currency, to):
            if currency not in worth:
                raise ToolError(f"no currency {currency[:20]!r}; there are: {', '.join(worth)}")
        return _checked(Money(self.amount * worth[self.currency] / worth[to], to))


def _checked(money: Money) -> Money:
    if money.amount > MOST:
        raise ToolError(f"more than {MOST} {money.currency}")
    return money
