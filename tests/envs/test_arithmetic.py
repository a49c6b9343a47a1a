from __future__ import annotations

from fractions import Fraction

import pytest
from env_runs import by_level, call, play
from hypothesis import given, settings, strategies as st

from sortie.core.errors import ToolError
from sortie.core.messages import Message, assistant
from sortie.core.task import Task
from sortie.envs import build
from sortie.envs.catalog.arithmetic.rewards import last_number
from sortie.envs.catalog.arithmetic.tools import calculator

ENV = build("arithmetic", levels=[1, 2, 3, 4, 5, 6], tasks_per_level=20, heldout_per_level=20)
TASKS = by_level(ENV, 8)

numbers = st.integers(0, 999).map(str) | st.decimals(0, 99, places=2).map(str)
expressions = st.recursive(
    numbers,
    lambda inner: (
        st.tuples(inner, st.sampled_from("+-*/"), inner).map("".join)
        | inner.map("({})".format)
        | inner.map("-{}".format)
    ),
    max_leaves=6,
).filter(lambda text: len(text) <= 64)


def exact(text: str) -> Fraction:
    """The value by another way: every number literal wrapped in Fraction."""
    import re

    value: Fraction = eval(re.sub(r"[\d.]+", lambda number: f"F('{number.group()}')", text), {"F": Fraction})
    return value


@settings(deadline=None)
@given(expressions)
def test_the_calculator_is_exact_to_six_decimals(expression: str) -> None:
    try:
        want = exact(expression)
    except ZeroDivisionError:
        with pytest.raises(ToolError, match="division by zero"):
            calculator(expression)
        return
    assert abs(Fraction(calculator(expression)) - want) <= Fraction(1, 2 * 10**6)


@pytest.mark.parametrize(
    ("expression", "value"),
    [("6*7", "42"), (" 1 - 2 ", "-1"), ("0.1+0.2", "0.3"), ("1/3", "0.333333"), ("-1/8", "-0.125"), ("2/3*3", "2")],
)
def test_the_calculator_writes_numbers_the_short_way(expression: str, value: str) -> None:
    assert calculator(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "2**99999999",
        "9//2",
        "1e999",
        "1_000",
        "().__class__",
        "(1)(2)",
        "()",
        "...",
        "1,2",
        "1+",
        "",
        "(" * 60,
        "1\n+1",
        "٣+٤",
        "1*" * 40 + "1",
    ],
)
def test_anything_but_short_arithmetic_is_refused_and_never_evaluated(expression: str) -> None:
    """Pain C4."""
    with pytest.raises(ToolError):
        calculator(expression)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1776", "1776"),
        ("37*48 is 1776.", "1776"),
        ("It is 1,776", "1776"),
        ("= -5", "-5"),
        ("2077-26", "26"),
        ("0.50 euros", "0.5"),
        ("no idea", None),
    ],
)
def test_the_answer_is_the_last_number_written(text: str, number: str | None) -> None:
    assert last_number(text) == (None if number is None else Fraction(number))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
async def test_the_oracle_scores_one_and_doing_nothing_zero(task: Task) -> None:
    assert ENV.oracle is not None
    solved = await play(ENV, task, ENV.oracle(task))
    assert (solved.reward, solved.parse_errors, any(record.error for record in solved.tools)) == (1.0, 0, False)
    assert (await play(ENV, task, [""])).reward == 0.0


@pytest.mark.parametrize("task", TASKS[:24], ids=lambda task: str(task.prompt))
def test_the_steps_of_a_task_use_the_numbers_of_its_prompt(task: Task) -> None:
    (expression,) = task.data["steps"]
    assert sorted(_numbers(expression)) == sorted(_numbers(str(task.prompt)))


def test_a_chain_of_values_means_what_it_says() -> None:
    for task in TASKS[40:]:
        lines, question = str(task.prompt).removesuffix("?").split(". What is ")
        values: dict[str, int] = {}
        for line in lines.split("; "):
            name, expression = line.split(" = ")
            values[name] = eval(expression, {}, dict(values))
        assert str(values[question]) == task.data["result"]


@pytest.mark.parametrize(
    ("says", "reward"),
    [
        ([call("calculator", expression="1+1"), "2"], 0.0),
        (["The answer is {result}."], 1.0),
        ([call("calculator", expression="2**3"), "{result}"], 1.0),
        ([call("calculator", expression=12), assistant("{result} or 3")], 0.0),
    ],
)
async def test_only_the_final_answer_counts(says: list[Message | str], reward: float) -> None:
    task = TASKS[0]
    spoken = [turn.format(**task.data) if isinstance(turn, str) else turn for turn in says]
    assert (await play(ENV, task, spoken)).reward == reward


async def test_a_refused_expression_tells_the_model_what_to_write() -> None:
    """Pain C1."""
    trajectory = await play(ENV, TASKS[0], [call("calculator", expression="two plus two"), "4"])
    assert trajectory.tools[0].output == "error: write numbers, + - * / and brackets only"


def _numbers(text: str) -> list[str]:
    import re

    return re.findall(r"\d+", text)
