"""Six levels of functions to write, put together from parts by a seeded generator.

A part is words, code and a plain function that does the same. A task's data: `cases`, pairs of argument and wanted
result, which the agent never sees; `code`, one solution. The wanted results come from the plain functions, not from the
code. Wordings are held out as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from sortie.core.messages import Message, ToolCall, assistant
from sortie.core.task import Task
from sortie.envs.taskset import Draft, Grade

CASES = 8
"""Hidden cases of a task."""
LEAST_RESULTS = 3
"""Different results among them, so that no constant is ever right."""


@dataclass(frozen=True, slots=True)
class Part:
    """One step: what it is called, its code around `{}`, and what it does."""

    words: str
    code: str
    does: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on `{}`."""

    words: str
    code: str
    holds: Callable[[Any], bool]
    edges: tuple[int, ...] = ()
    """Numbers at which a nearly right condition goes wrong."""


def oracle(task: Task) -> Sequence[Message]:
    """Writes the solution, then a word to end."""
    return [_write(task.data["code"]), assistant("Done.")]


def hostile(task: Task) -> Sequence[Sequence[Message]]:
    """Exits, markers, a value equal to all, patches, other tests, a search for what is wanted; code not saved."""
    results = [result for _, result in task.data["cases"]]
    codes = (
        "print('PASSED')\nraise SystemExit(0)",
        "import os\nos._exit(0)",
        "import os\nos.write(1, b'[true]')\nos.write(3, b'OK')\nos._exit(0)",
        "class Yes:\n __eq__ = lambda s, o: True\n __hash__ = None\ndef f(x):\n return Yes()",
        "class Yes(int):\n __eq__ = lambda s, o: True\ndef f(x):\n return Yes(1)",
        "import json\njson.dumps = lambda *a, **k: 'PASSED'\ndef f(x):\n return None",
        "import json\njson.dumps = lambda r, **k: json.JSONEncoder().encode(work['cases'])\ndef f(x):\n return x",
        "import sys\nw = sys._getframe(1).f_globals['work']\ndef f(x):\n return w.get('cases', w)",
        "import sys\nsys.modules['__main__'].results = 'PASSED'\ndef f(x):\n return x",
        "import gc\ndef f(x):\n return [o for o in gc.get_objects() if isinstance(o, dict) and 'cases' in o]",
        "open('/proc/self/cmdline').read()\nopen('test_f.py', 'w').write('def test(): pass')\ndef f(x):\n return x",
        f"def f(x):\n return {results[0]!r}",
        "def f(x):\n return f(x)",
        "def f(x):\n return '[' * 10**6",
    )
    patched = "import builtins, json\nbuiltins.len = json.dumps = lambda *a, **k: 'PASSED'"
    return [
        *([_write(code), assistant("Done.")] for code in codes),
        [assistant(f"def f(x):\n return x\n{results}")],
        [assistant("", _call("run", patched)), _write("def f(x):\n return x"), assistant("PASSED")],
        [assistant("", _call("run", task.data["code"])), assistant("Done.")],
    ]


def _line(rng: Random) -> Draft:
    a, b = rng.randint(2, 99), rng.randint(1, 99)
    word, sign, signed = rng.choice((("plus", "+", b), ("minus", "-", -b)))
    part = Part(f"x times {a} {word} {b}", f"x*{a}{sign}{b}", lambda x: x * a + signed)
    return _draft(part, [rng.randint(-50, 50) for _ in range(CASES)])


def _branch(rng: Random) -> Draft:
    test, yes, no = _number_test(rng), _step(rng), _step(rng)
    if yes.words == no.words:
        return _branch(rng)
    part = Part(
        f"{yes.words.format('x')} if x is {test.words}, else {no.words.format('x')}",
        f"{yes.code.format('x')} if {test.code.format('x')} else {no.code.format('x')}",
        lambda x: (yes if test.holds(x) else no).does(x),
    )
    return _draft(part, [*test.edges, *_numbers(rng)][:CASES])


def _some(rng: Random) -> Draft:
    return _list(rng, rng.choice((_SUM, _SORTED, _COUNT)), _number_test(rng), Part("{}", "{}", lambda n: n))


def _some_changed(rng: Random) -> Draft:
    return _list(rng, rng.choice((_SUM, _SORTED)), _number_test(rng), _step(rng))


def _text(rng: Random) -> Draft:
    first, second = rng.sample(_spellings(rng), 2)
    part = Part(
        f"x {first.words}, then {second.words}",
        second.code.format(first.code.format("x")),
        lambda x: second.does(first.does(x)),
    )
    return _draft(part, [_word(rng) for _ in range(CASES)])


def _words(rng: Random) -> Draft:
    whole, change = rng.choice((_JOINED, _SORTED)), rng.choice(_spellings(rng))
    letter, least = rng.choice(LETTERS), rng.randint(4, 6)
    test = rng.choice(
        (
            Condition(f"with {letter}", f"{letter!r} in {{}}", lambda w: letter in w),
            Condition(f"longer than {least}", f"len({{}})>{least}", lambda w: len(w) > least),
        )
    )
    inputs = [[_word(rng) for _ in range(rng.randint(3, 5))] for _ in range(CASES)]
    part = Part(
        f"{whole.words} of n {change.words} for each n in x {test.words}",
        whole.code.format(f"{change.code.format('n')} for n in x if {test.code.format('n')}"),
        lambda x: whole.does([change.does(w) for w in x if test.holds(w)]),
    )
    return _draft(part, inputs)


def _list(rng: Random, whole: Part, test: Condition, change: Part) -> Draft:
    """Some numbers of a list, each changed, put together."""
    changed = change.words.format("n")
    part = Part(
        f"{whole.words} of {changed} for each n in x that is {test.words}",
        whole.code.format(f"{change.code.format('n')} for n in x if {test.code.format('n')}"),
        lambda x: whole.does([change.does(n) for n in x if test.holds(n)]),
    )
    return _draft(part, [rng.sample([*test.edges, *_numbers(rng)], rng.randint(3, 6)) for _ in range(CASES)])


LETTERS = "aeiost"

_SUM = Part("sum", "sum({})", sum)
_COUNT = Part("count", "len([{}])", len)
_SORTED = Part("sorted list", "sorted({})", sorted)
_JOINED = Part("'-' join", "'-'.join({})", "-".join)


def _step(rng: Random) -> Part:
    """One change of a number."""
    k = rng.randint(2, 20)
    return rng.choice(
        (
            Part(f"{{}} plus {k}", f"{{}}+{k}", lambda n: n + k),
            Part(f"{{}} minus {k}", f"{{}}-{k}", lambda n: n - k),
            Part(f"{{}} times {k}", f"{{}}*{k}", lambda n: n * k),
        )
    )


def _number_test(rng: Random) -> Condition:
    k = rng.randint(2, 60)
    return rng.choice(
        (
            Condition("even", "{}%2==0", lambda n: n % 2 == 0),
            Condition("odd", "{}%2==1", lambda n: n % 2 == 1),
            Condition(f"over {k}", f"{{}}>{k}", lambda n: n > k, (k - 1, k, k + 1)),
            Condition(f"under {k}", f"{{}}<{k}", lambda n: n < k, (k - 1, k, k + 1)),
        )
    )


def _spellings(rng: Random) -> list[Part]:
    """Changes of a text."""
    k, letter = rng.randint(2, 3), rng.choice(LETTERS)
    return [
        Part("reversed", "{}[::-1]", lambda w: w[::-1]),
        Part("upper case", "{}.upper()", str.upper),
        Part(f"first {k}", f"{{}}[:{k}]", lambda w: w[:k]),
        Part(f"last {k}", f"{{}}[-{k}:]", lambda w: w[-k:]),
        Part(f"without {letter}", f"{{}}.replace({letter!r},'')", lambda w: w.replace(letter, "")),
        Part("every second", "{}[::2]", lambda w: w[::2]),
    ]


def _numbers(rng: Random) -> list[int]:
    return [rng.randint(-20, 80) for _ in range(CASES)]


def _word(rng: Random) -> str:
    return "".join(rng.choice("aaeeiioosstt" + "bcdfghklmnpr") for _ in range(rng.randint(4, 7)))


def _telling(draw: Callable[[Random], Draft]) -> Callable[[Random], Draft]:
    """Draws again until neither a constant nor the argument itself is right."""

    def again(rng: Random) -> Draft:
        while True:
            draft = draw(rng)
            cases = draft.data["cases"]
            different = {json.dumps(result) for _, result in cases}
            if len(different) >= LEAST_RESULTS and any(argument != result for argument, result in cases):
                return draft

    return again


def _write(code: str) -> Message:
    return assistant("", _call("write", code))


def _call(tool: str, code: str) -> ToolCall:
    return ToolCall(name=tool, arguments={"code": code})


def _draft(part: Part, inputs: Sequence[Any]) -> Draft:
    """The function as a task."""
    prompt = f"f(x): {part.words}."
    data = {
        "cases": [[argument, part.does(argument)] for argument in inputs],
        "code": f"def f(x):\n return {part.code}",
    }
    return Draft(prompt=prompt, data=data, identity=prompt)


GRADES = {
    1: Grade(asks="a product and a sum", turns=2, draw=_telling(_line)),
    2: Grade(asks="one of two formulas", turns=2, draw=_telling(_branch)),
    3: Grade(asks="some numbers of a list", turns=2, draw=_telling(_some)),
    4: Grade(asks="some numbers of a list, each changed", turns=2, draw=_telling(_some_changed)),
    5: Grade(asks="two changes of a text", turns=2, draw=_telling(_text)),
    6: Grade(asks="some words of a list, each changed", turns=2, draw=_telling(_words)),
}
