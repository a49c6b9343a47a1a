from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from env_runs import by_level, call, play

from sortie.core.errors import ResourceError, ToolError
from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.envs import build
from sortie.envs.catalog.filesystem.places import SANDBOX, SandboxTree
from sortie.envs.catalog.filesystem.tree import MOST_FILES, MemoryTree, Tree

LEVELS = [1, 2, 3, 4, 5, 6]
ENV = build("filesystem", place="memory", levels=LEVELS, tasks_per_level=20, heldout_per_level=20)
BOXED = build("filesystem", levels=LEVELS, tasks_per_level=20, heldout_per_level=20)
TASKS = by_level(ENV, 8)
TASK = Task(
    env="filesystem",
    prompt="Move a/x to b/y.",
    data={"files": {"a/x": "red", "a/z": "blue"}, "goal": {"b/y": "red", "a/z": "blue"}, "calls": []},
)
MOVE = call("mv", path="a/x", to="b/y")
START = {"a/x": "red", "a/b/c": "blue", "top": "old"}

Opened = Callable[[], AbstractAsyncContextManager[Tree]]


@asynccontextmanager
async def in_memory() -> AsyncIterator[Tree]:
    yield MemoryTree(START)


@asynccontextmanager
async def in_sandbox() -> AsyncIterator[Tree]:
    sandbox = await SANDBOX.start()
    try:
        for path, text in START.items():
            await sandbox.write(f"files/{path}", text)
        yield SandboxTree(sandbox)
    finally:
        await sandbox.close()


@pytest.fixture(params=["memory", "sandbox"])
def opened(request: pytest.FixtureRequest) -> Opened:
    """A tree with the files of START, in each place."""
    if request.param == "memory":
        return in_memory
    request.getfixturevalue("isolation")
    return in_sandbox


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
async def test_the_oracle_scores_one_and_doing_nothing_zero(task: Task) -> None:
    assert ENV.oracle is not None
    solved = await play(ENV, task, ENV.oracle(task))
    assert (solved.reward, solved.parse_errors, any(record.error for record in solved.tools)) == (1.0, 0, False)
    assert (await play(ENV, task, ["Done."])).reward == 0.0


@pytest.mark.parametrize("task", TASKS[::8], ids=lambda task: f"level {task.level}: {task.prompt}")
async def test_in_a_sandbox_the_oracle_sees_and_gets_the_same(task: Task, isolation: None) -> None:
    assert BOXED.oracle is not None
    boxed, plain = await play(BOXED, task, BOXED.oracle(task)), await play(ENV, task, BOXED.oracle(task))
    assert boxed.reward == plain.reward == 1.0
    assert [record.output for record in boxed.tools] == [record.output for record in plain.tools]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
def test_the_goal_is_what_the_prompt_says(task: Task) -> None:
    files = dict(task.data["files"])
    for change in re.split(", then ", str(task.prompt).rstrip(".")):
        files = changed(files, change[0].lower() + change[1:])
    assert files == task.data["goal"]


@pytest.mark.parametrize(
    ("says", "reward"),
    [
        ([MOVE, "Done."], 1.0),
        ([call("read", path="a/x"), call("write", path="b/y", text="red"), call("rm", path="a/x"), "Done."], 1.0),
        ([call("mv", path="a/z", to="b/y"), "Done."], 0.0),
        ([MOVE, call("write", path="goal", text="PASSED"), "Done."], 0.0),
        ([call("write", path="b/y", text="red"), "Done."], 0.0),
        ([MOVE, call("ls"), call("ls"), call("ls")], 0.0),
    ],
)
async def test_the_final_files_must_be_the_goal_and_the_agent_must_end(
    says: list[Message | str], reward: float
) -> None:
    env = build("filesystem", place="memory", levels=[2])
    assert (await play(env, TASK, says)).reward == reward


async def test_siblings_on_one_task_do_not_share_files() -> None:
    both = await asyncio.gather(play(ENV, TASK, [MOVE, "Done."]), play(ENV, TASK, [MOVE, "Done."]))
    assert [trajectory.reward for trajectory in both] == [1.0, 1.0]
    assert TASK.data["files"] == {"a/x": "red", "a/z": "blue"}


async def test_a_directory_is_there_for_as_long_as_a_file_is_in_it(opened: Opened) -> None:
    async with opened() as tree:
        assert await tree.entries("") == await tree.entries("/") == ["a/", "top"]
        assert await tree.entries("a/") == ["b/", "x"]
        await tree.move("a/b/c", "d/e/f")
        assert await tree.entries("a") == ["x"]
        with pytest.raises(ToolError, match="no directory 'a/b'"):
            await tree.entries("a/b")
        await tree.delete("d/e/f")
        await tree.delete("a/x")
        assert await tree.entries("") == ["top"]


@pytest.mark.parametrize("text", ["", "one\r\ntwo\n", "æ漢\u2028", "-n", "$(ls) 'x' \"y\"", "\x00"])
async def test_a_text_comes_back_as_it_was_written(opened: Opened, text: str) -> None:
    async with opened() as tree:
        await tree.write("a/new", text)
        assert await tree.read("a/new") == text
        assert await tree.snapshot() == {**START, "a/new": text}


async def test_what_cannot_be_done_changes_nothing_and_says_why(opened: Opened) -> None:
    """Pain C1."""
    async with opened() as tree:
        refused = [
            (tree.read("a/y"), "no file 'a/y'"),
            (tree.read("a"), "it is a directory"),
            (tree.delete("a"), "it is a directory"),
            (tree.write("a", "x"), "a is a directory"),
            (tree.write("top/x", "x"), "top is a file"),
            (tree.write("a/x", "x" * 10_001), "at most 10000"),
            (tree.move("a/x", "top"), "top is there already"),
            (tree.move("a/y", "b"), "no file"),
        ]
        for attempt, says in refused:
            with pytest.raises(ToolError, match=says):
                await attempt
        assert await tree.snapshot() == START


async def test_files_that_are_gone_with_their_sandbox_are_an_error_and_never_a_wrong_answer(isolation: None) -> None:
    """Pain E1."""
    sandbox = await SANDBOX.start()
    await sandbox.close()
    with pytest.raises(ResourceError):
        await SandboxTree(sandbox).snapshot()


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../x", "a/../../x", "a//x", "a/", "./x", "-rf", "~/x", "a\nb", "a b", "a\x00", "é", "x" * 60],
)
async def test_a_path_out_of_the_directory_reaches_no_place(path: str) -> None:
    tree = MemoryTree(START)
    for attempt in (tree.read(path), tree.write(path, "x"), tree.delete(path), tree.move("top", path)):
        with pytest.raises(ToolError, match="write a path as dir/file"):
            await attempt
    assert await tree.snapshot() == START


async def test_there_is_a_limit_to_the_number_of_files() -> None:
    tree = MemoryTree({f"f{n}": "x" for n in range(MOST_FILES)})
    await tree.write("f1", "y")
    with pytest.raises(ToolError, match="100 files already"):
        await tree.write("one-more", "x")


def changed(files: dict[str, str], change: str) -> dict[str, str]:
    """The files after a change said in words; shares no code with what drew it."""
    patterns: list[tuple[str, Callable[..., dict[str, str]]]] = [
        (r"delete (\S+/\S+)", lambda p: without(files, p)),
        (r"write (\w+) to (\S+)", lambda text, p: {**files, p: text}),
        (r"move (\S+/\S+) to (\S+)", lambda p, to: {**without(files, p), to: files[p]}),
        (r"copy (\S+) to (\S+)", lambda p, to: {**files, to: files[p]}),
        (r"move all of (\w+) to (\w+)", lambda a, b: {re.sub(rf"^{a}/", f"{b}/", p): t for p, t in files.items()}),
        (
            r"delete all of (\w+) but (\w+)",
            lambda a, but: {p: t for p, t in files.items() if not p.startswith(a + "/") or p == f"{a}/{but}"},
        ),
        (
            r"delete the file in (\w+) that says (\w+)",
            lambda a, says: {p: t for p, t in files.items() if not (p.startswith(a + "/") and t == says)},
        ),
        (
            r"in (\w+), make the file that says (\w+) say (\w+)",
            lambda a, old, new: {p: new if p.startswith(a + "/") and t == old else t for p, t in files.items()},
        ),
        (
            r"name each file in (\w+) after its text",
            lambda a: {f"{a}/{t}" if p.startswith(a + "/") else p: t for p, t in files.items()},
        ),
        (r"swap the texts of (\S+) and (\S+)", lambda a, b: {**files, a: files[b], b: files[a]}),
    ]
    for pattern, does in patterns:
        if found := re.fullmatch(pattern, change):
            return does(*found.groups())
    raise AssertionError(change)


def without(files: dict[str, str], path: str) -> dict[str, str]:
    assert path in files
    return {other: text for other, text in files.items() if other != path}
