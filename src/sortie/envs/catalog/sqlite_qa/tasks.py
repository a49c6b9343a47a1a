"""Six levels of questions about a database of two tables, drawn from a seeded generator.

A task's data: `db`, the tables with their columns and rows; `result`, the answer; `calls`, one way to it. Every task
has a database of its own, so an answer says nothing about the next. Wordings are held out as a whole: no held-out
prompt is ever a training prompt, whatever the database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from sortie.core.messages import Message, ToolCall, assistant
from sortie.core.task import Task
from sortie.envs.taskset import Draft, Grade

# fmt: off
KINDS = (
    "cats", "dogs", "cows", "pigs", "hens", "ducks", "goats", "horses", "birds", "bees", "bears", "lions", "wolves",
    "foxes", "mice", "actors", "cooks", "drivers", "doctors", "nurses", "pilots", "players", "poets", "singers",
    "sailors", "teachers", "students", "writers", "workers", "farmers", "guards", "hunters", "judges", "kings",
    "knights", "painters",
)
PEOPLE = (
    "Ann", "Ben", "Bob", "Dan", "Eva", "Fred", "Gina", "Hugo", "Ian", "Jack", "Jane", "Kate", "Leo", "Lisa", "Mary",
    "Max", "Nora", "Oscar", "Paul", "Rita", "Rose", "Sam", "Tina", "Tom",
)
CITIES = ("Rome", "Paris", "London", "Berlin", "Madrid", "Vienna", "Cairo", "Delhi", "Tokyo", "Lima", "Boston", "Nice")
# fmt: on
TRAITS = {
    "color": ("red", "blue", "green", "black", "white"),
    "food": ("rice", "bread", "fish", "corn", "soup"),
    "size": ("small", "large", "huge", "tiny"),
    "mood": ("happy", "sad", "calm", "angry"),
}
NUMBERS = ("age", "weight", "score", "height", "pay")
HOMES = ("club", "team", "farm", "school", "house", "camp", "band", "park")

Calls = list[tuple[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class _Tables:
    """`kind(name, trait, number, home)` and `homes(id, city)`. Numbers and cities are all different."""

    kind: str
    trait: str
    number: str
    home: str
    rows: list[tuple[str, str, int, int]]
    cities: list[str]
    """City of home 1, 2, ..."""

    def city(self, row: tuple[str, str, int, int]) -> str:
        """Where a row's home stands."""
        return self.cities[row[3] - 1]

    def draft(self, prompt: str, result: str | int, *calls: tuple[str, dict[str, Any]]) -> Draft:
        """The task that asks this."""
        tables = {
            self.kind: {
                "columns": ["name", self.trait, self.number, self.home],
                "rows": [list(row) for row in self.rows],
            },
            f"{self.home}s": {
                "columns": ["id", "city"],
                "rows": [list(row) for row in enumerate(self.cities, start=1)],
            },
        }
        data = {"db": tables, "result": str(result), "calls": [list(call) for call in calls]}
        return Draft(prompt=prompt, data=data, identity=prompt)


def oracle(task: Task) -> Sequence[Message]:
    """The calls one by one, then the result."""
    calls = [ToolCall(name=name, arguments=arguments) for name, arguments in task.data["calls"]]
    return [*(assistant("", call) for call in calls), assistant(task.data["result"])]


def hostile(task: Task) -> Sequence[Sequence[Message]]:
    """Statements that write, escape, loop or flood; then an answer that a changed table would make right."""
    kind, *_ = task.data["db"]
    statements = (
        f"delete from {kind}",
        f"update {kind} set name='x'",
        f"drop table {kind}",
        "create table x (a)",
        "attach 'x.db' as x",
        "vacuum into 'x.db'",
        "pragma query_only=off",
        "pragma writable_schema=on",
        "begin",
        "select load_extension('x')",
        "select randomblob(1000000000)",
        "with recursive n(i) as (select 1 union all select i+1 from n) select count(*) from n",
        f"select count(*) from {', '.join(f'{kind} as t{i}' for i in range(9))}",
        f"select * from {kind} as a, {kind} as b, {kind} as c",
    )
    return [
        *(
            [assistant("", _asked(statement)), assistant("0" if task.data["result"] != "0" else "1")]
            for statement in statements
        ),
        [assistant(" ".join(map(str, range(2000)))), assistant("Done.")],
        [assistant(", ".join([*PEOPLE, *CITIES, *(value for values in TRAITS.values() for value in values)]))],
    ]


def _count(rng: Random) -> Draft:
    db = _tables(rng)
    return db.draft(f"How many {db.kind} are there?", len(db.rows), _query(f"select count(*) from {db.kind}"))


def _filter(rng: Random) -> Draft:
    db = _tables(rng)
    sign = rng.choice("=<>")
    if sign == "=":
        value = rng.choice(db.rows)[1]
        text, where, found = f"{db.trait} {value}", f"{db.trait}='{value}'", [row for row in db.rows if row[1] == value]
    else:
        limit = rng.randint(20, 80)
        word = "over" if sign == ">" else "under"
        text, where = f"{db.number} {word} {limit}", f"{db.number}{sign}{limit}"
        found = [row for row in db.rows if (row[2] > limit if sign == ">" else row[2] < limit)]
    if not found:
        return _filter(rng)
    sql = f"select count(*) from {db.kind} where {where}"
    return db.draft(f"How many {db.kind} have {text}?", len(found), _query(sql))


def _extreme(rng: Random) -> Draft:
    db = _tables(rng)
    word, order, pick = rng.choice([("highest", " desc", max), ("lowest", "", min)])
    result = pick(db.rows, key=lambda row: row[2])[0]
    sql = f"select name from {db.kind} order by {db.number}{order} limit 1"
    return db.draft(f"Which of the {db.kind} has the {word} {db.number}?", result, _query(sql))


def _group(rng: Random) -> Draft:
    db = _tables(rng)
    text, measure, weight = _measure(rng, db)
    result = _first(_totals((row[1], weight(row)) for row in db.rows))
    if result is None:
        return _group(rng)
    sql = f"select {db.trait} from {db.kind} group by {db.trait} order by {measure} desc limit 1"
    return db.draft(f"Which {db.trait} has the {text} {db.kind}?", result, _query(sql))


def _join(rng: Random) -> Draft:
    db = _tables(rng)
    city = db.city(rng.choice(db.rows))
    found = [row for row in db.rows if db.city(row) == city]
    text, measure, result = rng.choice(
        [
            ("How many", "count(*)", len(found)),
            (f"What is the total {db.number} of the", f"sum({db.number})", sum(row[2] for row in found)),
        ]
    )
    verb = " are" if measure == "count(*)" else ""
    sql = f"select {measure} from {_joined(db)} where city='{city}'"
    return db.draft(f"{text} {db.kind}{verb} in the {db.home} in {city}?", result, _query(sql))


def _look_first(rng: Random) -> Draft:
    """As a join, but the question names neither the second table nor what leads there."""
    db = _tables(rng)
    text, measure, weight = _measure(rng, db)
    result = _first(_totals((db.city(row), weight(row)) for row in db.rows))
    if result is None:
        return _look_first(rng)
    looks: Calls = [("list", {}), ("describe", {"table": db.kind}), ("describe", {"table": f"{db.home}s"})]
    sql = f"select city from {_joined(db)} group by city order by {measure} desc limit 1"
    return db.draft(f"Which city has the {text} {db.kind}?", result, *looks, _query(sql))


def _tables(rng: Random) -> _Tables:
    kind, trait, number, home = (rng.choice(pool) for pool in (KINDS, tuple(TRAITS), NUMBERS, HOMES))
    names = rng.sample(PEOPLE, rng.randint(8, 16))
    numbers = rng.sample(range(10, 100), len(names))
    rows = [(name, rng.choice(TRAITS[trait]), n, rng.randint(1, 4)) for name, n in zip(names, numbers, strict=True)]
    return _Tables(kind, trait, number, home, rows, rng.sample(CITIES, 4))


def _measure(rng: Random, db: _Tables) -> tuple[str, str, Any]:
    """What groups are ranked by: in words, in SQL, and as a function of a row."""
    if rng.random() < 0.5:
        return "most", "count(*)", lambda row: 1
    return f"highest total {db.number} of", f"sum({db.number})", lambda row: row[2]


def _totals(parts: Any) -> Counter[str]:
    totals: Counter[str] = Counter()
    for key, weight in parts:
        totals[key] += weight
    return totals


def _first(totals: Mapping[str, int]) -> str | None:
    """The key with the largest total; None if two share it."""
    top = [key for key, total in totals.items() if total == max(totals.values())]
    return top[0] if len(top) == 1 else None


def _joined(db: _Tables) -> str:
    return f"{db.kind} join {db.home}s on {db.home}=id"


def _asked(sql: str) -> ToolCall:
    return ToolCall(name="query", arguments={"sql": sql})


def _query(sql: str) -> tuple[str, dict[str, Any]]:
    return "query", {"sql": sql}


GRADES = {
    1: Grade(asks="count the rows of a table", turns=2, draw=_count),
    2: Grade(asks="count the rows that meet a condition", turns=2, draw=_filter),
    3: Grade(asks="find the row with the highest or lowest number", turns=2, draw=_extreme),
    4: Grade(asks="group rows and find the largest group", turns=2, draw=_group),
    5: Grade(asks="join two tables, both named in the question", turns=2, draw=_join),
    6: Grade(asks="list and describe to find what to join, then group", turns=5, draw=_look_first),
}
