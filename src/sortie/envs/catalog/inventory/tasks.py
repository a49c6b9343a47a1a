"""Six levels of work in a shop and its depot, drawn from a seeded generator.

A task's data: `stock`, how the inventory starts; `goal`, how it must end; `calls`, one way there. The goal always
differs from the start. Wordings are held out as a whole: no held-out prompt is ever a training prompt, whatever the
stock.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from sortie.core.messages import Message, ToolCall, assistant
from sortie.core.task import Task
from sortie.envs.catalog.inventory.shop import DEPOT, PLACES, SHOP, Inventory
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


def hostile(task: Task) -> Sequence[Sequence[Message]]:
    """Says that it is done; looks and says so; makes one change too many; never ends."""
    *solution, end = oracle(task)
    item = next(iter(task.data["stock"]))
    look = assistant("", ToolCall(name="check", arguments={"item": item}))
    more = assistant("", ToolCall(name="order", arguments={"item": item, "n": 1}))
    return [[end], [look, end], [*solution, more, end], [*solution, look]]


def _few(rng: Random) -> Draft:
    return _single(rng, [_ORDER, _RESERVE], 20)


def _one_change(rng: Random) -> Draft:
    return _single(rng, _CHANGES, 99)


def _two_changes(rng: Random) -> Draft:
    stock, items = _shelves(rng)
    pair = zip(rng.sample(_CHANGES, 2), items[:2], strict=True)
    steps = [(text, _call(change, item, _feasible(rng, change, stock[item]))) for (change, text), item in pair]
    first, second = (_said(text, call) for text, call in steps)
    return _draft(f"{first}, then {second.lower()}.", stock, [call for _, call in steps])


def _look_up(rng: Random) -> Draft:
    stock, (item, *_) = _shelves(rng)
    verb, place = rng.choice([("order", SHOP), ("order", DEPOT), ("reserve", SHOP), ("move", DEPOT)])
    text = f"{verb.capitalize()} as many {item} as the {place} has."
    return _draft(text, stock, [_check(item), _call(verb, item, stock[item][place])])


def _condition(rng: Random) -> Draft:
    stock, (item, *_) = _shelves(rng)
    place, limit = rng.choice(PLACES), rng.randint(30, 80)
    order, reserve = (_call(change, item, _feasible(rng, change, stock[item])) for change in ("order", "reserve"))
    fewer = stock[item][place] < limit
    text = (
        f"If the {place} has fewer than {limit} {item}, order {order[1]['n']} {item}; "
        f"otherwise reserve {reserve[1]['n']} {item}."
    )
    return _draft(text, stock, [_check(item), order if fewer else reserve])


def _fill_up(rng: Random) -> Draft:
    stock, (item, *_) = _shelves(rng)
    here = stock[item][SHOP]
    wanted = here + rng.randint(1, stock[item][DEPOT])
    text = f"Reserve {wanted} {item}, but first move what the shop lacks."
    calls = [_check(item), _call("move", item, wanted - here), _call("reserve", item, wanted)]
    return _draft(text, stock, calls)


def _compare(rng: Random) -> Draft:
    stock, (one, two, *_) = _shelves(rng)
    if stock[one][SHOP] == stock[two][SHOP]:
        return _compare(rng)
    fewer, more = sorted((one, two), key=lambda item: stock[item][SHOP])
    n = rng.randint(2, 99)
    text = f"Order {n} of whichever the shop has fewer of, {one} or {two}, and move the other's whole depot stock."
    calls = [_check(one), _check(two), _call("order", fewer, n), _call("move", more, stock[more][DEPOT])]
    return _draft(text, stock, calls)


def _work_out(rng: Random) -> Draft:
    return rng.choice((_fill_up, _compare))(rng)


_ORDER = ("order", "Order {n} {item}")
_MOVE = ("move", "Move {n} {item} to the shop")
_RESERVE = ("reserve", "Reserve {n} {item}")
_CHANGES = (_ORDER, _MOVE, _RESERVE)


def _single(rng: Random, changes: Sequence[tuple[str, str]], most: int) -> Draft:
    stock, (item, *_) = _shelves(rng)
    change, text = rng.choice(changes)
    call = _call(change, item, _feasible(rng, change, stock[item], most))
    return _draft(f"{_said(text, call)}.", stock, [call])


def _shelves(rng: Random) -> tuple[Stock, list[str]]:
    """A stock of four items, and their names in random order."""
    items = rng.sample(ITEMS, 4)
    stock = {item: {place: rng.randint(10, 99) for place in PLACES} for item in sorted(items)}
    return stock, items


def _feasible(rng: Random, change: str, places: dict[str, int], most: int = 99) -> int:
    """A number of pieces that the change can be made with, at most `most`."""
    return rng.randint(2, min(most, {"order": most, "move": places[DEPOT], "reserve": places[SHOP]}[change]))


def _check(item: str) -> Call:
    return "check", {"item": item}


def _call(name: str, item: str, n: int) -> Call:
    return name, {"item": item, "n": n}


def _said(text: str, call: Call) -> str:
    return text.format(**call[1])


def _draft(prompt: str, stock: Stock, calls: Sequence[Call]) -> Draft:
    inventory = Inventory.of(stock)
    for name, arguments in calls:
        if name != "check":
            getattr(inventory, name)(**arguments)
    data = {"stock": stock, "goal": inventory.snapshot(), "calls": [list(call) for call in calls]}
    return Draft(prompt=prompt, data=data, identity=prompt)


GRADES = {
    1: Grade(asks="order or reserve a few", turns=2, draw=_few),
    2: Grade(asks="one change, any number of pieces", turns=2, draw=_one_change),
    3: Grade(asks="two changes in a row", turns=3, draw=_two_changes),
    4: Grade(asks="look up how many, then one change", turns=3, draw=_look_up),
    5: Grade(asks="look up, then one of two changes", turns=3, draw=_condition),
    6: Grade(asks="look up, work out what is missing, then two changes", turns=5, draw=_work_out),
}
