"""An invented world of people, companies and towns, one document each. It is the same for every seed of the tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from random import Random
from typing import Literal

from sortie.envs.catalog.retrieval_qa.library import Document

# fmt: off
FIRST = (
    "Ann", "Ben", "Bob", "Dan", "Eva", "Fred", "Gina", "Hugo", "Ian", "Jack", "Jane", "Kate", "Leo", "Lisa", "Mary",
    "Max", "Nora", "Oscar", "Paul", "Rita", "Rose", "Sam", "Tina", "Tom",
)
LAST = (
    "Adams", "Baker", "Clark", "Cook", "Davis", "Evans", "Fisher", "Grant", "Green", "Hall", "Hill", "Jones", "King",
    "Lee", "Mason", "Moore", "Parker", "Reed", "Scott", "Smith", "Stone", "Taylor", "Turner", "Wood",
)
PRODUCTS = (
    "lamps", "cups", "pens", "books", "chairs", "bags", "shoes", "clocks", "phones", "shirts", "rings", "toys", "ropes",
    "tents", "drums", "flags", "gloves", "masks", "nails", "wheels",
)
# fmt: on
COMPANY = (("Blue", "Red", "Gold", "Black", "White", "Grey"), ("Fox", "Star", "Moon", "Lion", "Bear", "Ship", "Tree"))
TOWN = (("East", "West", "North", "South", "New", "Old"), ("Port", "Bridge", "Castle", "Church", "Market", "Field"))
RIVER = (("Long", "Cold", "Deep", "Slow", "Dark", "Clear"), ("Water", "Creek", "Stream", "Brook", "Run", "Bend"))

Kind = Literal["person", "company", "town", "word"]

RELATIONS: Mapping[Kind, Mapping[str, Kind]] = {
    "person": {"employer": "company", "home": "town", "friend": "person", "birth year": "word"},
    "company": {"seat": "town", "head": "person", "product": "word"},
    "town": {"river": "word", "mayor": "person"},
    "word": {},
}
"""What each kind of thing has, and of what kind that is; a word has no document."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Every fact, and the documents that hold them, in an order that says nothing."""

    names: Mapping[Kind, Sequence[str]]
    facts: Mapping[str, Mapping[str, str]]
    """By name, then by relation."""
    documents: Sequence[Document]
    numbers: Mapping[str, int]
    """By name: the number of its document, from 1."""

    def follow(self, name: str, relations: Sequence[str]) -> list[str]:
        """The names met on the way from `name` along the relations, itself first."""
        path = [name]
        for relation in relations:
            path.append(self.facts[path[-1]][relation])
        return path


def _named(first: Sequence[str], last: Sequence[str]) -> list[str]:
    return [" ".join(pair) for pair in product(first, last)]


@cache
def corpus() -> Corpus:
    """The one corpus there is."""
    rng = Random("retrieval_qa")
    names: dict[Kind, list[str]] = {"person": _named(FIRST, LAST), "company": _named(*COMPANY), "town": _named(*TOWN)}
    rivers = _named(*RIVER)
    rng.shuffle(rivers)
    facts: dict[str, dict[str, str]] = {}
    for person in names["person"]:
        friend = rng.choice([other for other in names["person"] if other != person])
        facts[person] = {
            "employer": rng.choice(names["company"]),
            "home": rng.choice(names["town"]),
            "friend": friend,
            "birth year": str(rng.randint(1930, 1999)),
        }
    for company in names["company"]:
        facts[company] = {
            "seat": rng.choice(names["town"]),
            "head": rng.choice(names["person"]),
            "product": rng.choice(PRODUCTS),
        }
    for town, river in zip(names["town"], rivers, strict=True):
        facts[town] = {"river": river, "mayor": rng.choice(names["person"])}
    order = sorted(facts, key=lambda name: rng.random())
    documents = [
        Document(name, "; ".join(f"{relation} {value}" for relation, value in facts[name].items())) for name in order
    ]
    return Corpus(names, facts, documents, {name: n for n, name in enumerate(order, start=1)})
