"""Six levels of work in a shop, drawn from a seeded generator.

A task's data: `stock`, how the shop starts; `goal`, how it must end; `calls`, one way there. The goal always differs
from the start. Wordings are held out as a whole: no held-out prompt is ever a training prompt, whatever the stock.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from sortie.core.messages import Message, ToolCall, assistant
from sortie.core.task import Task
from sortie.envs.catalog.inventory.shop import STORES, Shop
from sortie.envs.taskset import Draft, Grade

# Words that are one token for SmolLM2: a name spelled in pieces is harder to copy.
# fmt: off
ITEMS = (
    "lamps", "cups", "pens", "books", "chairs", "bags", "boxes", "shoes", "plates", "knives", "clocks", "phones",
    "shirts", "belts", "rings", "toys", "balls", "ropes", "tents", "bowls", "pots", "keys", "locks", "bells",
    "maps", "cards", "coins", "dolls", "drums", "flags", "gloves", "jars", "masks", "nails", "paints", "pins",
    "spoons", "tools", "wheels",
)
# fmt: on

Stock = dict[str, dict[str, int]]
Call = tuple[str, dict[str, Any]]


def oracle(task: Task) -> Sequence[Message]:
    """The calls one by one, then a word to end."""
    calls = [ToolCall(name=name, arguments=arguments) for name, arguments in task.data["calls"]]
    return [*(assistant("", call) for call in calls), assistant("Done.")]


def _one_call(rng: Random) -> Draft:
    stock, (item, *_) = _shelves(rng)
    text, call = _reserve(rng, item, stock) if rng.random() < 0.5 else _order(rng, item)
    return _draft(f"{text}.", stock, [call])


def _one_move(rng: Random) -> Draft:
    stock, (item, *_) = _shelves(rng)
    text, call = _move(rng, item, stock)
    return _draft(f"{text}.", stock, [call])


def _two_calls(rng: Random) -> Draft:
    stock, (first, second, *_) = _shelves(rng)
    steps = [_reserve(rng, first, stock), _order(rng, second), _move(rng, second, stock)]
    del steps[rng.randrange(1, 3)]
    rng.shuffle(steps)
    (text, call), (then, next_call) = steps
    return _draft(f"{text}, then {then[0].lower()}{then[1:]}.", stock, [call, next_call])


def _look_up(rng: Random) -> Draft:
    stock, (item, *_) = _shelves(rng)
    store, verb = rng.choice(STORES), rng.choice(("reserve", "order"))
    text = f"{verb.capitalize()} as many {item} as {store} has."
    return _draft(text, stock, [_check(item), (verb, {"item": item, "n": stock[item][store]})])


def _condition(rng: Random) -> Draft:
    stock, (item, *_) = _shelves(rng)
    store, limit = rng.choice(STORES), rng.randint(20, 70)
    (yes, yes_call), (no, no_call) = _order(rng, item), _reserve(rng, item, stock)
    text = f"If {store} has fewer than {limit} {item}, {yes.lower()}; otherwise {no.lower()}."
    return _draft(text, stock, [_check(item), yes_call if stock[item][store] < limit else no_call])


def _several(rng: Random) -> Draft:
    """Compare two items, order the scarcer one up to a level, and even out the other between the stores."""
    stock, (one, two, *_) = _shelves(rng)
    store, level = rng.choice(STORES), rng.randint(100, 140)
    scarce, other = sorted((one, two), key=lambda item: sum(stock[item].values()))
    short = sum(stock[scarce].values())
    if short == sum(stock[other].values()) or short >= level:
        return _several(rng)
    even = sum(stock[other].values()) // 2
    away = stock[other][_opposite(store)] - even
    if away < 1:
        return _several(rng)
    text = (
        f"Of {one} and {two}, order the one with less stock up to {level} in all, "
        f"and move the other to {store} until {_opposite(store)} has {even}."
    )
    calls = [_check(one), _check(two), ("order", {"item": scarce, "n": level - short}), _moved(other, away, store)]
    return _draft(text, stock, calls)


def _shelves(rng: Random) -> tuple[Stock, list[str]]:
    """A stock of four items, and their names in random order."""
    items = rng.sample(ITEMS, 4)
    stock = {item: {store: rng.randint(10, 99) for store in STORES} for item in sorted(items)}
    return stock, items


def _check(item: str) -> Call:
    return "check", {"item": item}


def _reserve(rng: Random, item: str, stock: Stock) -> tuple[str, Call]:
    n = rng.randint(2, min(99, sum(stock[item].values())))
    return f"Reserve {n} {item}", ("reserve", {"item": item, "n": n})


def _order(rng: Random, item: str) -> tuple[str, Call]:
    n = rng.randint(2, 99)
    return f"Order {n} {item}", ("order", {"item": item, "n": n})


def _move(rng: Random, item: str, stock: Stock) -> tuple[str, Call]:
    to = rng.choice(STORES)
    n = rng.randint(2, stock[item][_opposite(to)])
    return f"Move {n} {item} to {to}", _moved(item, n, to)


def _moved(item: str, n: int, to: str) -> Call:
    return "move", {"item": item, "n": n, "to": to}


def _opposite(store: str) -> str:
    return STORES[1 - STORES.index(store)]


def _draft(prompt: str, stock: Stock, calls: Sequence[Call]) -> Draft:
    shop = Shop.of(stock)
    for name, arguments in calls:
        if name != "check":
            getattr(shop, name)(**arguments)
    data = {"stock": stock, "goal": shop.snapshot(), "calls": [list(call) for call in calls]}
    return Draft(prompt=prompt, data=data, identity=prompt)


GRADES = {
    1: Grade(asks="reserve or order, named outright", turns=2, draw=_one_call),
    2: Grade(asks="move between stores", turns=2, draw=_one_move),
    3: Grade(asks="two changes in a row", turns=3, draw=_two_calls),
    4: Grade(asks="look up how many, then act", turns=3, draw=_look_up),
    5: Grade(asks="look up, then one of two changes", turns=3, draw=_condition),
    6: Grade(asks="compare two items, then change both", turns=5, draw=_several),
}
