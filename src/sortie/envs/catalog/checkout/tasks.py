"""Six levels of bills, drawn from a seeded generator.

A task's data: `prices` by item; `worth`, what one unit of each currency is worth; `result`, the answer; `turns`, the
calls that lead there, turn by turn. Prices and rates are drawn anew for every task, and so that every way of reckoning
comes to the same exact amount. Wordings are held out as a whole: no held-out prompt is ever a training prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from sortie.core.messages import Message, ToolCall, assistant
from sortie.core.task import Task
from sortie.envs.catalog.checkout.money import Money
from sortie.envs.taskset import Draft, Grade

# fmt: off
ITEMS = (
    "lamps", "cups", "pens", "books", "chairs", "bags", "boxes", "shoes", "plates", "knives", "clocks", "phones",
    "shirts", "belts", "rings", "toys", "balls", "ropes", "tents", "bowls", "pots", "keys", "locks", "bells", "maps",
    "cards", "dolls", "drums", "flags", "gloves", "jars", "masks", "nails", "pins", "spoons", "wheels",
)
# fmt: on
CURRENCIES = ("EUR", "USD", "GBP", "JPY", "CHF", "CAD")
WORTHS = (1, 2, 4, 5, 8, 10)
"""Their quotients have at most three decimals, so that no amount is ever rounded."""

Call = tuple[str, dict[str, Any]]


def oracle(task: Task) -> Sequence[Message]:
    """The calls turn by turn, those that do not wait for each other at once, then the result."""
    turns = [[ToolCall(name=name, arguments=arguments) for name, arguments in turn] for turn in task.data["turns"]]
    return [*(assistant("", *calls) for calls in turns), assistant(task.data["result"])]


def hostile(task: Task) -> Sequence[Sequence[Message]]:
    """Every amount at once, the right number without its currency, amounts that are none."""
    number, currency = task.data["result"].split()
    odd = ("nan EUR", "inf EUR", "1e9 EUR", "-5 EUR", "9" * 40 + " EUR", "٣ EUR")
    calls = [ToolCall(name="times", arguments={"amount": text, "n": 10**18}) for text in odd]
    return [
        [assistant(" ".join(f"{n} {currency}" for n in range(1000)))],
        [assistant(number)],
        [assistant(f"{task.data['result']} or 1 {currency}")],
        [assistant("", *calls), assistant("nan EUR")],
    ]


def _price(rng: Random) -> Draft:
    return _bill(rng, pieces=[1], abroad=False)


def _some(rng: Random) -> Draft:
    return _bill(rng, pieces=[rng.randint(2, 12)], abroad=False)


def _abroad(rng: Random) -> Draft:
    return _bill(rng, pieces=[1], abroad=True)


def _some_abroad(rng: Random) -> Draft:
    return _bill(rng, pieces=[rng.randint(2, 12)], abroad=True)


def _two(rng: Random) -> Draft:
    return _bill(rng, pieces=[1, 1], abroad=True)


def _some_of_two(rng: Random) -> Draft:
    return _bill(rng, pieces=[rng.randint(2, 12), rng.randint(2, 12)], abroad=True)


def _bill(rng: Random, *, pieces: Sequence[int], abroad: bool) -> Draft:
    """So many of each of some items; abroad: in a currency that at least the first is not priced in."""
    items = rng.sample(ITEMS, len(pieces))
    here, there, *_ = currencies = rng.sample(CURRENCIES, 3)
    worth = dict(zip(currencies, rng.sample(WORTHS, 3), strict=True))
    prices = {item: f"{rng.randint(2, 99)} {currency}" for item, currency in zip(items, (here, there), strict=False)}
    turns, bill = _reckon(prices, pieces, there if abroad else here, worth)
    counted = " and ".join(item if n == 1 else f"{n} {item}" for item, n in zip(items, pieces, strict=True))
    question = f"What do {counted} cost" if max(pieces) > 1 else f"What is the price of {counted}"
    prompt = f"{question} in {there}?" if abroad else f"{question}?"
    others = {item: f"{rng.randint(2, 99)} {here}" for item in rng.sample(ITEMS, 2) if item not in prices}
    listed = dict(sorted({**prices, **others}.items()))
    data = {"prices": listed, "worth": worth, "result": str(bill), "turns": turns}
    return Draft(prompt=prompt, data=data, identity=prompt)


def _reckon(
    prices: dict[str, str], pieces: Sequence[int], to: str, worth: dict[str, int]
) -> tuple[list[list[list[Any]]], Money]:
    """The turns that make the bill, and the bill. A step that has nothing to do is left out."""
    amounts = [Money.of(price) for price in prices.values()]
    turns: list[list[Call]] = [[("price", {"item": item}) for item in prices]]
    turns.append([("times", {"amount": str(a), "n": n}) for a, n in zip(amounts, pieces, strict=True) if n > 1])
    amounts = [amount.times(n) for amount, n in zip(amounts, pieces, strict=True)]
    turns.append([("change", {"amount": str(amount), "to": to}) for amount in amounts if amount.currency != to])
    bill, *rest = [amount.change(to, worth) for amount in amounts]
    for amount in rest:
        turns.append([("plus", {"a": str(bill), "b": str(amount)})])
        bill = bill.plus(amount)
    return [[list(call) for call in turn] for turn in turns if turn], bill


GRADES = {
    1: Grade(asks="a price", turns=2, draw=_price),
    2: Grade(asks="several of an item", turns=3, draw=_some),
    3: Grade(asks="a price in another currency", turns=3, draw=_abroad),
    4: Grade(asks="several of an item, in another currency", turns=4, draw=_some_abroad),
    5: Grade(asks="two items, in the currency of one of them", turns=4, draw=_two),
    6: Grade(asks="several of two items, in the currency of one of them", turns=5, draw=_some_of_two),
}
