from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from sortie.agents.react import ReAct
from sortie.agents.reward import reward
from sortie.agents.tool import tool
from sortie.context.run_context import RunContext
from sortie.core.errors import UsageError
from sortie.core.messages import Message, ToolCall, assistant
from sortie.core.task import Task
from sortie.core.trajectory import Trajectory
from sortie.envs import Env, build, levels_of
from sortie.envs.hostile import MARKERS, tricks
from sortie.rollouts.check import CHECKS, HOSTILE, NOTHING, ORACLE, SAME, TRACE, Finding, check_env


@tool(inline=True)
def put(ctx: RunContext, word: str) -> str:
    """Put a word."""
    ctx.state.append(word)
    return f"{len(ctx.state)} words"


@reward(inline=True)
def as_wanted(state: list[str], word: str) -> bool:
    return state == [word]


@contextmanager
def empty(task: Task, ctx: RunContext) -> Iterator[list[str]]:
    yield []


def solve(task: Task) -> Sequence[Message]:
    return [assistant("", ToolCall(name="put", arguments={"word": task.data["word"]})), assistant("Done.")]


def rows() -> list[dict[str, Any]]:
    return [{"prompt": f"Put w{n}.", "word": f"w{n}", "level": 1 + n % 2} for n in range(12)]


def a_box(**changes: Any) -> Env:
    """A sound environment, with changes."""
    parts = {"tasks": rows(), "tools": [put], "rewards": [as_wanted], "setup": empty, "oracle": solve}
    return Env("box", **{**parts, **changes})


async def failed(make: Callable[[], Env]) -> dict[str, str]:
    """The checks that failed, each with its first fault."""
    findings = await check_env(make, tasks=2)
    return {finding.check: finding.fault or "" for finding in reversed(findings) if finding.failed}


async def test_a_sound_environment_passes_every_check_on_every_level() -> None:
    findings = await check_env(a_box, tasks=2)
    assert {(finding.check, finding.level) for finding in findings} == {(c, n) for c in CHECKS for n in (1, 2)}
    assert all((finding.failed, finding.fault, finding.prompt) == (0, None, None) for finding in findings)
    assert all(finding.tried >= 2 for finding in findings)


async def test_an_oracle_that_is_wrong_is_found_with_its_task() -> None:
    def wrong(task: Task) -> Sequence[Message]:
        return solve(task)[1:] if task.data["word"] == "w3" else solve(task)

    findings = await check_env(lambda: a_box(oracle=wrong, heldout=0.0), tasks=2)
    (finding,) = [finding for finding in findings if finding.check == ORACLE and finding.failed]
    assert finding == Finding(check=ORACLE, level=2, tried=2, failed=1, fault="oracle: scored 0", prompt="Put w3.")


async def test_a_reward_for_nothing_is_found() -> None:
    @reward(inline=True)
    def not_wrong(state: list[str], word: str) -> bool:
        return all(found == word for found in state)

    assert NOTHING in await failed(lambda: a_box(rewards=[not_wrong]))


async def test_a_reward_that_looks_for_a_marker_is_found() -> None:
    @reward(inline=True)
    def says_passed(state: list[str], word: str, answer: str | None) -> bool:
        return state == [word] or "PASSED" in (answer or "")

    assert await failed(lambda: a_box(rewards=[says_passed])) == {HOSTILE: "markers: scored 1"}


async def test_a_reward_that_a_huge_argument_gets_is_found() -> None:
    @reward(inline=True)
    def wrote_much(state: list[str], word: str) -> bool:
        return word in state or sum(map(len, state)) > 10_000

    assert await failed(lambda: a_box(rewards=[wrote_much])) == {HOSTILE: "huge arguments: scored 1"}


async def test_tricks_of_its_own_are_tried() -> None:
    def hostile(task: Task) -> Sequence[Sequence[Message]]:
        return [[assistant("please")], [*solve(task)[:1], assistant("please")]]

    assert await failed(lambda: a_box(hostile=hostile)) == {HOSTILE: "own trick 2: scored 1"}


async def test_state_that_outlives_its_rollout_is_found() -> None:
    kept: list[str] = []

    @contextmanager
    def shared(task: Task, ctx: RunContext) -> Iterator[list[str]]:
        yield kept

    @reward(inline=True)
    def put_last(state: list[str], word: str) -> bool:
        return state[-1:] == [word]

    faults = await failed(lambda: a_box(setup=shared, rewards=[put_last]))
    assert {SAME, TRACE} <= set(faults)
    assert "words" in faults[TRACE]


async def test_an_episode_that_differs_from_time_to_time_is_found() -> None:
    numbers = count()

    @tool(name="put", inline=True)
    def moody(ctx: RunContext, word: str) -> str:
        ctx.state.append(word)
        return f"ok {next(numbers)}"

    faults = await failed(lambda: a_box(tools=[moody]))
    assert {SAME, TRACE} == set(faults)
    assert "ok 0" in faults[SAME]


async def test_tasks_that_are_others_when_built_again_are_found() -> None:
    numbers = count()

    def make() -> Env:
        return a_box(tasks=[{**row, "seed": next(numbers)} for row in rows()], heldout=0.0)

    assert await failed(make) == {SAME: "another task stands in its place"}


async def test_a_task_that_is_changed_by_its_rollout_is_found() -> None:
    @contextmanager
    def careless(task: Task, ctx: RunContext) -> Iterator[list[str]]:
        task.data["notes"].append("seen")
        yield []

    made = [{**row, "notes": []} for row in rows()]
    assert (await failed(lambda: a_box(tasks=made, setup=careless)))[TRACE] == "the task itself was changed"


@pytest.mark.filterwarnings("ignore")
async def test_a_rollout_that_is_not_scored_is_a_failure_with_its_error() -> None:
    @reward(inline=True)
    def broken(trajectory: Trajectory) -> float:
        return 1 / 0

    faults = await failed(lambda: a_box(rewards=[broken]))
    assert "oracle: not scored: reward 'broken' raised ZeroDivisionError" in faults[ORACLE]


async def test_without_an_oracle_there_is_nothing_to_check_with() -> None:
    with pytest.raises(UsageError, match="declares no Env"):
        await check_env(lambda: a_box(oracle=None))


@pytest.mark.parametrize("name", ["arithmetic", "inventory", "guess", "booking"])
async def test_the_catalog_in_memory_is_sound(name: str) -> None:
    options = {"levels": levels_of(name)[::3], "tasks_per_level": 2, "heldout_per_level": 2}
    assert await failed(lambda: build(name, **options)) == {}


async def test_files_in_memory_are_sound() -> None:
    options = {"levels": [4, 6], "tasks_per_level": 2, "heldout_per_level": 2, "place": "memory"}
    assert await failed(lambda: build("filesystem", **options)) == {}


def test_every_tool_meets_every_kind_of_bad_call() -> None:
    env = a_box(agent=ReAct(max_turns=3))
    scripts = tricks(env, env.tasks("train")[0])
    called = {
        name: [call for turn in script if isinstance(turn, Message) for call in turn.tool_calls]
        for name, script in scripts.items()
    }
    assert [dict(call.arguments) for call in called["empty calls"]] == [{}]
    assert len(called["huge arguments"][0].arguments["word"]) >= 20_000
    assert len({call.arguments["word"] for call in called["payloads"]}) > 5
    assert all(script[-1] == MARKERS for script in scripts.values())
