from __future__ import annotations

import asyncio
import os
import re
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from env_runs import by_level, call, play

from sortie.core.errors import ToolError
from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.envs import build
from sortie.envs.catalog.sqlite_qa.database import CHARACTERS, opened, run
from toy import toy_context

ENV = build("sqlite_qa", levels=[1, 2, 3, 4, 5, 6], tasks_per_level=20, heldout_per_level=20)
TASKS = by_level(ENV, 5)
DB = {
    "cats": {
        "columns": ["name", "color", "age", "club"],
        "rows": [["Ann", "red", 31, 1], ["Bob", "blue", 12, 2], ["Eva", "red", 9, 2]],
    },
    "clubs": {"columns": ["id", "city"], "rows": [[1, "Rome"], [2, "Lima"]]},
}
TASK = Task(env="sqlite_qa", prompt="How many cats have color red?", data={"db": DB, "result": "2", "calls": []})
COUNT = call("query", sql="select count(*) from cats where color='red'")


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
async def test_the_oracle_scores_one_and_doing_nothing_zero(task: Task) -> None:
    assert ENV.oracle is not None
    solved = await play(ENV, task, ENV.oracle(task))
    assert (solved.reward, solved.parse_errors, any(record.error for record in solved.tools)) == (1.0, 0, False)
    assert solved.tools[-1].output == task.data["result"]
    assert (await play(ENV, task, [""])).reward == 0.0


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
def test_the_result_is_what_the_prompt_asks_for(task: Task) -> None:
    assert read(str(task.prompt), task.data["db"]) == task.data["result"]


async def test_the_tables_can_be_listed_described_and_queried() -> None:
    says = [call("list"), call("describe", table="cats"), call("query", sql="select name, age from cats limit 2"), "2"]
    played = await play(ENV, TASK, says)
    assert [record.output for record in played.tools] == ["cats, clubs", "name, color, age, club", "Ann, 31\nBob, 12"]


@pytest.mark.parametrize(
    ("answer", "reward"), [("2", 1.0), ("2.", 1.0), ("1 or 2", 0.0), ("It is 2", 0.0), ("3", 0.0), ("2.0", 0.0)]
)
async def test_only_the_bare_answer_counts(answer: str, reward: float) -> None:
    assert (await play(ENV, TASK, [COUNT, answer])).reward == reward


@pytest.mark.parametrize(
    "sql",
    [
        "delete from cats",
        "insert into cats values ('Max', 'red', 1, 1)",
        "insert into cats values (?, ?, ?, ?)",
        "update cats set color='red'",
        "drop table cats",
        "create table dogs (name)",
        "create temp table dogs (name)",
        "attach 'left.db' as other",
        "vacuum into 'left.db'",
        "begin",
        "savepoint here",
        "pragma query_only=off",
        "pragma writable_schema=on",
        "select load_extension('left')",
        "select writefile('left.db', 'x')",
        "select 1; delete from cats",
        "with gone as (select 1) delete from cats",
    ],
)
async def test_nothing_but_reading_is_allowed(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pain D1, C4."""
    monkeypatch.chdir(tmp_path)
    played = await play(ENV, TASK, [call("query", sql=sql), COUNT, "2"])
    assert (played.tools[0].error, played.tools[1].output, played.reward) == (True, "2", 1.0)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "sql",
    [
        f"select count(*) from {', '.join(f'cats t{n}' for n in range(20))}",
        "with recursive n(i) as (select 1 union all select i+1 from n) select count(*) from n",
        "select randomblob(100000000)",
        "select group_concat(x) from (select group_concat(name||name||name) x from cats, clubs a, clubs b, clubs c)"
        ", cats, clubs, clubs b, clubs c",
        "select " + "1," * 300 + "1",
        "select " + "(" * 80 + "1" + ")" * 80 + "+1" * 60,
    ],
    ids=["work", "recursion", "memory", "concatenation", "length", "depth"],
)
async def test_a_query_without_end_or_measure_is_stopped(sql: str) -> None:
    """Pain C1."""
    played = await play(ENV, TASK, [call("query", sql=sql), "2"])
    assert played.tools[0].error
    assert len(played.tools[0].output) < 200


async def test_the_work_of_one_query_does_not_count_against_the_next() -> None:
    heavy = call("query", sql="select count(*) from cats a, cats b, cats c, cats d, cats e, cats f, cats g")
    played = await play(ENV, TASK, [*[heavy] * 5, "2"])
    assert [record.output for record in played.tools] == ["2187"] * 5


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("select name from cat", "error: no such table: cat"),
        ("select weight from cats", "error: no such column: weight"),
        ("delete from cats", "error: only a plain select is allowed"),
        ("-- nothing", "error: write one select"),
        ("select name from cats where age>90", "no rows"),
        ("select null", "null"),
    ],
)
async def test_what_comes_back_says_what_to_do(sql: str, says: str) -> None:
    """Pain C1."""
    assert (await play(ENV, TASK, [call("query", sql=sql), "2"])).tools[0].output == says


async def test_a_long_result_is_cut_and_says_so() -> None:
    many = await play(ENV, TASK, [call("query", sql="select a.name from cats a, cats b, cats c"), "2"])
    assert many.tools[0].output == "\n".join(["Ann"] * 9 + ["Bob", "... there is more"])
    wide = await play(
        ENV, TASK, [call("query", sql="select group_concat(a.name) from cats a, cats b, cats, cats d"), "2"]
    )
    assert len(wide.tools[0].output) == CHARACTERS + len("\n... there is more")


async def test_every_rollout_has_a_database_of_its_own_and_closes_it() -> None:
    ctx = toy_context()
    with opened(TASK, ctx) as one, opened(TASK, ctx) as other:
        assert one is not other
        with pytest.raises(ToolError):
            run(one, "delete from cats")
    for connection in (one, other):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("select 1")


async def test_siblings_on_one_task_do_not_meet() -> None:
    both = await asyncio.gather(play(ENV, TASK, [COUNT, "2"]), play(ENV, TASK, [COUNT, COUNT, "2"]))
    assert [played.reward for played in both] == [1.0, 1.0]


def test_no_held_out_wording_is_trained_on_or_shown() -> None:
    env = build("sqlite_qa", levels=[1, 2, 3, 4, 5, 6], tasks_per_level=100, heldout_per_level=50)
    train, heldout = ({task.prompt for task in env.tasks(split)} for split in ("train", "heldout"))
    shown = {example[0].content for example in env.examples}
    assert not heldout & (train | shown)


def test_a_look_at_the_tables_is_shown_where_one_is_needed() -> None:
    def calls(levels: list[int]) -> list[str]:
        messages: list[Message] = [m for example in build("sqlite_qa", levels=levels).examples for m in example]
        return [tool_call.name for message in messages for tool_call in message.tool_calls]

    assert calls([1, 5]) == ["query"]
    assert calls([6]) == ["list", "describe", "describe", "query", "query"]


def read(prompt: str, db: dict[str, Any]) -> str:
    """The answer, by reading the prompt; shares no code with what drew it and uses no SQL."""
    kind, homes = db
    columns = db[kind]["columns"]
    cities = dict(db[homes]["rows"])
    rows = [{**dict(zip(columns, row, strict=True)), "city": cities[row[3]]} for row in db[kind]["rows"]]
    if re.fullmatch(rf"How many {kind} are there\?", prompt):
        return str(len(rows))
    if found := re.fullmatch(rf"How many {kind} have (\w+) (over|under) (\d+)\?", prompt):
        column, word, limit = found.groups()
        return str(sum((row[column] > int(limit)) if word == "over" else (row[column] < int(limit)) for row in rows))
    if found := re.fullmatch(rf"How many {kind} have (\w+) (\w+)\?", prompt):
        return str(sum(row[found[1]] == found[2] for row in rows))
    if found := re.fullmatch(rf"Which of the {kind} has the (highest|lowest) (\w+)\?", prompt):
        ranked = sorted(rows, key=lambda row: row[found[2]], reverse=found[1] == "highest")
        return str(ranked[0]["name"])
    if found := re.fullmatch(rf"How many {kind} are in the (\w+) in (\w+)\?", prompt):
        return str(sum(row["city"] == found[2] for row in rows))
    if found := re.fullmatch(rf"What is the total (\w+) of the {kind} in the (\w+) in (\w+)\?", prompt):
        return str(sum(row[found[1]] for row in rows if row["city"] == found[3]))
    found = re.fullmatch(rf"Which (\w+) has the (?:most|highest total (\w+) of) {kind}\?", prompt)
    assert found is not None
    totals = Counter[str]()
    for row in rows:
        totals[row[found[1]]] += row[found[2]] if found[2] else 1
    return totals.most_common(1)[0][0]
