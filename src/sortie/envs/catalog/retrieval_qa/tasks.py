"""Six levels of questions over the corpus, drawn from a seeded generator.

A task's data: `result`, the answer; `calls`, the searches and documents that lead to it. The things that questions are
about are held out as a whole: no held-out question starts from what a training question starts from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from random import Random
from typing import Any

from sortie.core.messages import Message, ToolCall, assistant
from sortie.core.task import Task
from sortie.envs.catalog.retrieval_qa.corpus import RELATIONS, Kind, corpus
from sortie.envs.taskset import Draft, Grade

Call = tuple[str, dict[str, Any]]


def oracle(task: Task) -> Sequence[Message]:
    """The calls one by one, then the result."""
    calls = [ToolCall(name=name, arguments=arguments) for name, arguments in task.data["calls"]]
    return [*(assistant("", call) for call in calls), assistant(task.data["result"])]


def hostile(task: Task) -> Sequence[Sequence[Message]]:
    """Every name at once, the answer among others, documents that are not there, empty and endless searches."""
    names = [name for names in corpus().names.values() for name in names]
    reads = [ToolCall(name="read", arguments={"n": n}) for n in (-1, 0, 10**18, len(names) + 1)]
    searches = [ToolCall(name="search", arguments={"words": words}) for words in ("", "?!", " ".join(names))]
    return [
        [assistant(", ".join(names))],
        [assistant(f"{task.data['result']} or {names[0]} {names[1]}")],
        [assistant("", *reads), assistant("nothing")],
        [assistant("", *searches), assistant("nothing")],
    ]


def _one_hop(rng: Random) -> Draft:
    return _asked(rng, 1)


def _two_hops(rng: Random) -> Draft:
    return _asked(rng, 2)


def _three_hops(rng: Random) -> Draft:
    return _asked(rng, 3)


def _who(rng: Random) -> Draft:
    person, text, calls = _described(rng)
    return _draft(f"Who has {text}?", person, calls, person)


def _of_whom(rng: Random) -> Draft:
    person, text, calls = _described(rng)
    first = rng.choice([r for r, kind in RELATIONS["person"].items() if kind != "word" and f"{r} " not in text])
    last = rng.choice(sorted(RELATIONS[RELATIONS["person"][first]]))
    path = corpus().follow(person, [first, last])
    if path[-1] == person:
        return _of_whom(rng)
    prompt = f"What is the {last} of the {first} of the person with {text}?"
    return _draft(prompt, path[-1], [*calls, *_look_up(path[1])], person)


def _older(rng: Random) -> Draft:
    pair = sorted(rng.sample(corpus().names["company"], 2))
    heads = [corpus().facts[company]["head"] for company in pair]
    years = [int(corpus().facts[head]["birth year"]) for head in heads]
    if years[0] == years[1]:
        return _older(rng)
    calls = [call for company, head in zip(pair, heads, strict=True) for call in (*_look_up(company), *_look_up(head))]
    prompt = f"Who is older, the head of {pair[0]} or the head of {pair[1]}?"
    return _draft(prompt, heads[years.index(min(years))], calls, ", ".join(pair))


def _asked(rng: Random, hops: int) -> Draft:
    """A chain of relations from a person, without coming back to where it has been."""
    person = rng.choice(corpus().names["person"])
    relations: list[str] = []
    kind: Kind = "person"
    for left in range(hops, 0, -1):
        ways = sorted(relation for relation, to in RELATIONS[kind].items() if left == 1 or to != "word")
        relations.append(rng.choice(ways))
        kind = RELATIONS[kind][relations[-1]]
    path = corpus().follow(person, relations)
    if len(set(path)) < len(path):
        return _asked(rng, hops)
    of = " of the ".join(reversed(relations))
    calls = [call for name in path[:-1] for call in _look_up(name)]
    return _draft(f"What is the {of} of {person}?", path[-1], calls, person)


def _described(rng: Random) -> tuple[str, str, list[Call]]:
    """A person, two facts that are true of no other, and the calls that find who it is."""
    person = rng.choice(corpus().names["person"])
    pair = rng.choice(_pairs(person))
    if _shared()[pair] > 1:
        return _described(rng)
    return person, " and ".join(pair), [("search", {"words": " ".join(pair)}), _read(person)]


@cache
def _shared() -> Counter[tuple[str, ...]]:
    """How many people each pair of facts is true of."""
    return Counter(pair for person in corpus().names["person"] for pair in _pairs(person))


def _pairs(person: str) -> list[tuple[str, ...]]:
    return list(combinations([f"{relation} {value}" for relation, value in corpus().facts[person].items()], 2))


def _look_up(name: str) -> tuple[Call, Call]:
    return ("search", {"words": name}), _read(name)


def _read(name: str) -> Call:
    return "read", {"n": corpus().numbers[name]}


def _draft(prompt: str, result: str, calls: Sequence[Call], about: str) -> Draft:
    return Draft(prompt=prompt, data={"result": result, "calls": [list(call) for call in calls]}, identity=about)


GRADES = {
    1: Grade(asks="a fact of someone named", turns=3, draw=_one_hop),
    2: Grade(asks="who it is that two facts are true of", turns=3, draw=_who),
    3: Grade(asks="two hops", turns=5, draw=_two_hops),
    4: Grade(asks="three hops", turns=7, draw=_three_hops),
    5: Grade(asks="two hops from someone described", turns=5, draw=_of_whom),
    6: Grade(asks="compare two people, each a hop away", turns=9, draw=_older),
}
