"""Six levels of arithmetic, drawn from a seeded generator.

A task's data: `result`, the number to answer, and `steps`, the expressions that lead there. Results are held out as a
whole: no held-out answer is ever the answer of a training task.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from sortie.core.messages import Message, ToolCall, assistant
from sortie.core.task import Task
from sortie.envs.catalog.arithmetic.tools import evaluate
from sortie.envs.taskset import Draft, Grade

WORDS = (
    ("Multiply {a} by {b}, then add {c}.", "{a}*{b}+{c}"),
    ("Multiply {a} by {b}, then subtract {c}.", "{a}*{b}-{c}"),
    ("Add {a} and {c}, then multiply by {b}.", "({a}+{c})*{b}"),
    ("Subtract {a} from {c}, then multiply by {b}.", "({c}-{a})*{b}"),
    ("Take the product of {a} and {b} away from {c}.", "{c}-{a}*{b}"),
)

STORIES = (
    ("{a} boxes hold {b} pens each; {c} pens are sold. How many are left?", "{a}*{b}-{c}"),
    ("{a} shelves hold {b} books each, and {c} more lie on the floor. How many books?", "{a}*{b}+{c}"),
    ("A shop sells {a} cups at {b} coins and gets a bill of {c} coins. What is left?", "{a}*{b}-{c}"),
    ("{a} farms with {b} hens and {d} ducks each sell {c} birds. How many are left?", "{a}*({b}+{d})-{c}"),
    ("{a} buses carry {b} people each and {d} vans carry {e} each. How many people?", "{a}*{b}+{d}*{e}"),
)


def oracle(task: Task) -> Sequence[Message]:
    """One call per step, then the result."""
    calls = [assistant("", ToolCall(name="calculator", arguments={"expression": step})) for step in task.data["steps"]]
    return [*calls, assistant(task.data["result"])]


def _product(rng: Random) -> Draft:
    return _asked(f"{_small(rng)}*{_small(rng)}")


def _three_numbers(rng: Random) -> Draft:
    a, b, c = _small(rng), _small(rng), _large(rng)
    return _asked(rng.choice([f"{a}*{b}+{c}", f"{a}*{b}-{c}", f"{c}-{a}*{b}"]))


def _four_numbers(rng: Random) -> Draft:
    a, b, c, d = (_small(rng) for _ in range(4))
    return _asked(rng.choice([f"({a}+{b})*{c}-{d}", f"{a}*{b}+{c}*{d}", f"{a}*({b}+{c})-{d}"]))


def _words(rng: Random) -> Draft:
    return _filled(rng, WORDS)


def _story(rng: Random) -> Draft:
    draft = _filled(rng, STORIES)
    return draft if not draft.data["result"].startswith("-") else _story(rng)  # nobody sells more than there is


def _chain(rng: Random) -> Draft:
    """Four to six named values, each made from the one before and one further back or a fresh number."""
    names = "abcdef"[: rng.randint(4, 6)]
    steps = [f"{_small(rng)}*{_small(rng)}"]
    lines = [f"a = {steps[0]}"]
    values = [evaluate(steps[0])]
    for at in range(1, len(names)):
        sign, back = rng.choice("+-*"), rng.randrange(at)
        other, spelled = (_small(rng),) * 2 if sign == "*" or back == at - 1 else (values[back], names[back])
        lines.append(f"{names[at]} = {names[at - 1]}{sign}{spelled}")
        steps.append(f"({values[-1]}){sign}({other})")
        values.append(evaluate(steps[-1]))
    return _draft(f"{'; '.join(lines)}. What is {names[-1]}?", steps)


def _asked(expression: str) -> Draft:
    return _draft(f"What is {expression}?", [expression])


def _filled(rng: Random, templates: Sequence[tuple[str, str]]) -> Draft:
    text, expression = rng.choice(templates)
    numbers = {"a": _small(rng), "b": _small(rng), "c": _large(rng), "d": _small(rng), "e": _small(rng)}
    return _draft(text.format(**numbers), [expression.format(**numbers)])


def _draft(prompt: str, steps: Sequence[str]) -> Draft:
    result = evaluate(steps[-1])
    return Draft(prompt=prompt, data={"result": result, "steps": list(steps)}, identity=result)


def _small(rng: Random) -> int:
    return rng.randint(12, 99)


def _large(rng: Random) -> int:
    return rng.randint(101, 999)


GRADES = {
    1: Grade(asks="a product of two numbers", turns=2, draw=_product),
    2: Grade(asks="an expression of three numbers", turns=2, draw=_three_numbers),
    3: Grade(asks="an expression of four numbers, with brackets", turns=2, draw=_four_numbers),
    4: Grade(asks="an expression said in words", turns=2, draw=_words),
    5: Grade(asks="a short story", turns=2, draw=_story),
    6: Grade(asks="four to six values that build on each other", turns=7, draw=_chain),
}
