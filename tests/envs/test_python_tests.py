from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from env_runs import by_level, call, play

from sortie.core.errors import ResourceError
from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.envs import build
from sortie.envs.catalog.python_tests.judge import SANDBOX, results_of
from sortie.envs.catalog.python_tests.tasks import hostile
from sortie.resources.kinds.sandbox.sandbox import Sandbox

ENV = build("python_tests", levels=[1, 2, 3, 4, 5, 6], tasks_per_level=20, heldout_per_level=20)
TASKS = by_level(ENV, 20)
TASK = Task(
    env="python_tests",
    prompt="f(x): x times 3 plus 7.",
    data={"cases": [[1, 10], [2, 13], [-5, -8], [0, 7]], "code": "def f(x):\n return x*3+7"},
)
RIGHT = call("write", code=TASK.data["code"])


@pytest.fixture
async def sandbox(isolation: None) -> AsyncIterator[Sandbox]:
    started = await SANDBOX.start()
    yield started
    await started.close()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
def test_the_solution_gives_every_wanted_result_and_no_constant_does(task: Task) -> None:
    space: dict[str, Any] = {}
    exec(task.data["code"], space)
    results = [space["f"](argument) for argument, _ in task.data["cases"]]
    assert results == [wanted for _, wanted in task.data["cases"]]
    assert len({json.dumps(result) for result in results}) >= 3


@pytest.mark.parametrize("task", TASKS[:20], ids=lambda task: str(task.prompt))
def test_the_first_level_means_what_it_says(task: Task) -> None:
    expression = str(task.prompt).removeprefix("f(x): ").rstrip(".")
    for word, sign in (("times", "*"), ("plus", "+"), ("minus", "-")):
        expression = expression.replace(word, sign)
    assert all(eval(expression, {"x": argument}) == wanted for argument, wanted in task.data["cases"])


@pytest.mark.parametrize("task", TASKS[::20], ids=lambda task: f"level {task.level}: {task.prompt}")
async def test_the_oracle_scores_one_and_doing_nothing_zero(task: Task, isolation: None) -> None:
    assert ENV.oracle is not None
    assert (await play(ENV, task, ENV.oracle(task))).reward == 1.0
    assert (await play(ENV, task, ["Done."])).reward == 0.0


@pytest.mark.parametrize(
    ("says", "reward"),
    [
        ([call("write", code="def f(x):\n return 0"), RIGHT, "Done."], 1.0),
        ([RIGHT, call("write", code="def f(x):\n return 0"), "Done."], 0.0),
        ([call("write", code="print('hello')\nf = lambda x: print(x) or 3*x+7"), "Done."], 1.0),
        ([call("write", code="def f(x):\n return float(x*3+7)"), "Done."], 0.0),
        ([call("write", code="def f(x):\n return x*3+"), "Done."], 0.0),
        ([call("write", code="def g(x):\n return x*3+7"), "Done."], 0.0),
        ([RIGHT, *[call("run", code="1")] * 3], 0.0),
    ],
)
async def test_the_last_code_counts_and_the_agent_must_end(
    says: list[Message | str], reward: float, isolation: None
) -> None:
    assert (await play(ENV, TASK, says)).reward == reward


async def test_code_is_tried_after_the_solution_and_its_output_comes_back(isolation: None) -> None:
    wrong = call("run", code="print(f(0))\nf()")
    played = await play(ENV, TASK, [RIGHT, wrong, "Done."])
    assert played.tools[1].output.startswith("7\n")
    assert "missing 1 required positional argument" in played.tools[1].output


async def test_no_known_trick_passes_the_tests(sandbox: Sandbox) -> None:
    """Pain C4: the code runs where nothing knows what is expected."""
    wanted = [wanted for _, wanted in TASK.data["cases"]]
    tricks = [turn for script in hostile(TASK) for turn in script if isinstance(turn, Message) and turn.tool_calls]
    codes = [turn.tool_calls[0].arguments["code"] for turn in tricks if turn.tool_calls[0].name == "write"]
    assert len(codes) > 10
    for code in codes:
        assert await results_of(sandbox, code, [argument for argument, _ in TASK.data["cases"]]) != wanted, code


@pytest.mark.parametrize(
    "before",
    [
        "open('json.py', 'w').write('x')\nopen('sitecustomize.py', 'w').write('raise SystemExit')",
        "import os\nif os.fork() == 0:\n os.setsid()\n while True: pass",
        "import os, signal\nfor p in range(1, 400):\n try:\n  os.kill(p, signal.SIGKILL)\n except OSError: pass",
        "import os\nos.system('rm -rf / ~ * 2>/dev/null')",
    ],
    ids=["modules of the same name", "a process left behind", "signals to all", "everything deleted"],
)
async def test_what_the_agent_ran_before_cannot_change_the_tests(sandbox: Sandbox, before: str) -> None:
    await sandbox.python(before)
    assert await results_of(sandbox, TASK.data["code"], [1, 2]) == [10, 13]
    assert await results_of(sandbox, "def f(x):\n return 0", [1, 2]) == [0, 0]


async def test_the_wanted_results_never_enter_the_sandbox(sandbox: Sandbox) -> None:
    """Everything that can be reached from the solution's frames, and the process's own memory of its input."""
    spy = (
        "import gc, sys\n"
        "g = sys._getframe(1).f_globals\n"
        "seen = repr({k: v for k, v in g.items() if k != '__builtins__'}) + repr(gc.get_objects())[:200000]\n"
        "def f(x):\n return seen\n"
    )
    secret = "4711471147"
    task = {"code": spy, "cases": [["in", secret]]}
    (seen,) = await results_of(sandbox, task["code"], [argument for argument, _ in task["cases"]])
    assert "'inputs': ['in']" in seen
    assert secret not in seen


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n return 10**6000",
        "def f(x):\n return {1}",
        "def f(x):\n a = []\n a.append(a)\n return a",
        "def f(x):\n return float('nan')",
        "import os\nos.write(out, b'[' * 10**6)\nos._exit(0)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "",
    ],
)
async def test_whatever_comes_out_it_is_a_wrong_answer_and_not_a_crash(sandbox: Sandbox, code: str) -> None:
    source = code.replace("os.write(out", "import sys\nos.write(sys._getframe(1).f_globals['out']")
    assert await results_of(sandbox, source, [1]) != [1]


async def test_a_solution_that_never_ends_is_a_wrong_answer(isolation: None) -> None:
    """Pain E2."""
    brief = await replace(SANDBOX, wall_s=0.5).start()
    try:
        assert await results_of(brief, "def f(x):\n while True:\n  pass", [1]) is None
    finally:
        await brief.close()


async def test_a_broken_sandbox_is_an_error_and_never_a_wrong_answer(isolation: None) -> None:
    """Pain E1."""
    broken = await SANDBOX.start()
    await broken.close()
    with pytest.raises(ResourceError):
        await results_of(broken, TASK.data["code"], [1])
