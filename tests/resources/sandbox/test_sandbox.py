"""What a sandbox is for: running code, keeping files and state for one rollout, ending cleanly."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sandboxes import SMALL, host_processes, opened

from sortie.core.errors import ResourceError
from sortie.resources.engine import ResourceEngine
from sortie.resources.kinds.sandbox.sandbox import RunResult, Sandbox
from sortie.resources.kinds.sandbox.spec import SandboxSpec


@pytest.fixture
async def sandbox(some_kind: str) -> AsyncIterator[Sandbox]:
    """Of one kind only: what follows is the work of the first process, which is the same in all of them."""
    async with opened(some_kind) as started:
        yield started


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_a_command_is_given_its_input_and_answers_with_output_and_exit_code(sandbox: Sandbox) -> None:
    text = "twice é " * 50_000  # more than a pipe holds
    result = await sandbox.run(["sh", "-c", "cat; echo problem >&2; exit 3"], stdin=text)
    assert result == RunResult(output=text + "problem\n", exit_code=3)


async def test_a_command_that_is_not_there_says_so(sandbox: Sandbox) -> None:
    result = await sandbox.run(["no-such-thing"])
    assert (result.exit_code, result.output) == (127, "sandbox: no such command: 'no-such-thing'\n")


async def test_odd_text_harms_only_its_own_command(some_kind: str) -> None:
    """Models write null bytes and lone surrogates; a first process that fell over them would take the rollout along."""
    odd = "a\ud800b\0c"
    async with opened(some_kind) as sandbox:
        with pytest.raises(ValueError, match="an empty command"):
            await sandbox.run([])
        assert (await sandbox.run(["cat"], stdin=odd)).output == "a?b\0c"
        assert "surrogates not allowed" in (await sandbox.run(["echo", "a\ud800"])).output
        assert "embedded null byte" in (await sandbox.run(["echo", "a\0"])).output
        assert "Argument list too long" in (await sandbox.run(["echo", "x" * 300_000])).output
        assert "null bytes" in (await sandbox.python(odd)).output
        assert (await sandbox.python("print('a\ud800')")).output == "a?\n"
        for name in ("a\ud800", "a\0", "x" * 300, ""):
            with pytest.raises(OSError, match="Errno"):
                await sandbox.write(name, "text")
        await sandbox.write("odd", odd)
        assert await sandbox.read("odd") == "a?b\0c"
        assert (await sandbox.run(["printf", r"\377\376"])).output == "\ufffd\ufffd"


async def test_python_is_this_interpreter_by_both_names_also_below_a_shell(kind: str) -> None:
    show = "import sys; print(sys.version_info[:2], sys.prefix)"
    async with opened(kind) as sandbox:
        outputs = {
            (await sandbox.run(argv)).output
            for argv in (["python", "-c", show], ["python3", "-c", show], ["sh", "-c", f"python -c '{show}'"])
        }
    assert outputs == {f"{sys.version_info[:2]} {sys.base_prefix}\n"}


async def test_code_has_one_namespace(sandbox: Sandbox) -> None:
    """Recursion, imports used in functions, generators and comprehensions over top-level names."""
    result = await sandbox.python(
        """
import math
from dataclasses import dataclass
factor = 2
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def root(x):
    return math.sqrt(x)
def imports_inside():
    import json
    def inner():
        return json.dumps([factor])
    return inner()
class Holder:
    value = [factor * i for i in range(3)]
@dataclass
class Point:
    x: int
def later():
    return defined_below()
def defined_below():
    return "below"
if __name__ == "__main__":
    print(fib(10), root(16), imports_inside(), list(factor * i for i in range(3)), [fib(i) for i in range(5)],
          Holder.value, Point(1), later(), (lambda: factor)())
"""
    )
    assert result.output == "55 4.0 [2] [0, 2, 4] [0, 1, 1, 2, 3] [0, 2, 4] Point(x=1) below 2\n"
    assert result.exit_code == 0


async def test_state_is_kept_between_calls_on_request_and_only_then(sandbox: Sandbox) -> None:
    await sandbox.python("import math\nx = 5\ndef area(r): return math.floor(math.pi * r * x)", keep_state=True)
    assert (await sandbox.python("print(x)")).output.endswith("NameError: name 'x' is not defined\n")
    assert (await sandbox.run(["echo", "between"])).output == "between\n"
    kept = await sandbox.python("x += 1\nprint(x, area(1), [x for _ in range(2)])", keep_state=True)
    assert kept.output == "6 18 [6, 6]\n"
    failed = await sandbox.python("x = 7\n1 / 0", keep_state=True)
    assert failed.output.endswith("ZeroDivisionError: division by zero\n")
    assert 'File "<code 3>", line 2' in failed.output
    assert (await sandbox.python("print(x)\nraise SystemExit(4)", keep_state=True)) == RunResult(
        output="7\n", exit_code=4
    )
    assert (await sandbox.python("print(x)", keep_state=True)).output == "7\n"


async def test_kept_state_is_lost_with_a_limit_or_its_process_and_the_next_call_starts_anew(sandbox: Sandbox) -> None:
    await sandbox.python("x = 1", keep_state=True)
    hung = await sandbox.python("while True: pass", keep_state=True, timeout_s=0.2)
    assert (hung.timed_out, hung.killed_reason) == (True, "time: 0.2 s")
    assert "NameError" in (await sandbox.python("x", keep_state=True)).output
    left = await sandbox.python("import os\nos._exit(9)", keep_state=True)
    assert (left.exit_code, left.killed_reason) == (9, None)
    await sandbox.python("x = 2", keep_state=True)
    few = await sandbox.python("import os; print(sum(name.isdigit() for name in os.listdir('/proc')))")
    assert few.output == "3\n"  # the first process, the kept program, this one: -1 reaches nobody else
    await sandbox.run(["sh", "-c", "kill -9 -1"])
    assert "NameError" in (await sandbox.python("x", keep_state=True)).output


async def test_what_a_kept_program_started_ends_with_the_call(sandbox: Sandbox) -> None:
    before = host_processes(sandbox.pid)
    await sandbox.python("import subprocess\nchild = subprocess.Popen(['sleep', '60'])", keep_state=True)
    assert len(host_processes(sandbox.pid) - before) == 1  # the program itself
    assert (await sandbox.python("print(child.wait())", keep_state=True)).output == "-9\n"


async def test_what_a_program_printed_before_it_was_ended_arrives(sandbox: Sandbox) -> None:
    result = await sandbox.python("print('so far')\nwhile True: pass", timeout_s=1.0)
    assert (result.output, result.timed_out) == ("so far\n", True)


async def test_a_background_process_does_not_outlive_its_command(sandbox: Sandbox) -> None:
    before = host_processes(sandbox.pid)
    result = await sandbox.run(["sh", "-c", "sleep 60 & echo started"])
    assert (result.output, result.exit_code) == ("started\n", 0)
    assert host_processes(sandbox.pid) == before


async def test_files_are_written_read_and_listed(sandbox: Sandbox) -> None:
    await sandbox.write("folder/deep/text.txt", "héllo\n")
    await sandbox.write("solution.py", "print(open('folder/deep/text.txt').read().upper())")
    assert (await sandbox.run(["python3", "solution.py"])).output == "HÉLLO\n\n"
    assert await sandbox.list() == ["folder/", "solution.py"]
    assert await sandbox.list("folder/deep") == ["text.txt"]
    await sandbox.write("folder/deep/text.txt", "")
    assert await sandbox.read("folder/deep/text.txt") == ""
    assert (await sandbox.python("import solution")).output == "\n"
    with pytest.raises(FileNotFoundError, match="nope"):
        await sandbox.read("nope")
    with pytest.raises(IsADirectoryError):
        await sandbox.read("folder")
    with pytest.raises(NotADirectoryError):
        await sandbox.list("solution.py")


async def test_a_file_larger_than_allowed_is_an_error_that_says_so(sandbox: Sandbox) -> None:
    with pytest.raises(OSError, match="File too large"):
        await sandbox.write("large", "x" * (5 << 20))


async def test_commands_at_the_same_time_run_one_after_the_other(some_kind: str) -> None:
    async with opened(some_kind) as sandbox:
        step = "import os\nn = len(os.listdir('.'))\nopen(f'file{n}', 'x').close()\nprint(n)"
        results = await asyncio.gather(*(sandbox.python(step) for _ in range(3)))
    assert [result.output for result in results] == ["0\n", "1\n", "2\n"]


async def test_a_cancelled_command_is_ended_and_the_sandbox_stays_of_use(some_kind: str) -> None:
    """Pain C18."""
    async with opened(some_kind) as sandbox:
        before = host_processes(sandbox.pid)
        waiting = asyncio.create_task(sandbox.run(["sh", "-c", "sleep 60"]))
        while host_processes(sandbox.pid) == before:  # noqa: ASYNC110  # another process starts: no event tells it
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await sandbox.run(["echo", "well"])).output == "well\n"
        assert host_processes(sandbox.pid) == before


async def test_no_command_gets_more_time_than_the_spec_allows(some_kind: str) -> None:
    async with opened(some_kind, wall_s=0.2) as sandbox:
        result = await sandbox.run(["sleep", "60"], timeout_s=60)
    assert result.killed_reason == "time: 0.2 s"


async def test_closing_ends_everything_twice_is_once_and_later_use_says_so(kind: str) -> None:
    """Pain C7."""
    sandbox = await replace(SMALL, isolation=kind).start()
    hanging = asyncio.create_task(sandbox.run(["sleep", "60"]))
    await asyncio.sleep(0)
    await asyncio.gather(sandbox.close(), sandbox.close())
    await sandbox.close()
    with pytest.raises(ResourceError, match=r"the sandbox (ended while a command ran in it|is closed)"):
        await hanging
    with pytest.raises(ResourceError, match="the sandbox is closed"):
        await sandbox.run(["true"])
    assert not is_alive(sandbox.pid)


async def test_a_sandbox_that_dies_is_an_error_of_the_resource(some_kind: str) -> None:
    async with opened(some_kind) as sandbox:
        hanging = asyncio.create_task(sandbox.run(["sleep", "60"]))
        await asyncio.sleep(0)
        os.killpg(sandbox.pid, signal.SIGKILL)
        with pytest.raises(ResourceError, match="the sandbox ended while a command ran in it"):
            await hanging


async def test_every_lease_gets_a_fresh_sandbox_and_nothing_is_left_at_the_end(some_kind: str) -> None:
    """Pain C7: a used sandbox is replaced; also after an error in the rollout."""
    spec = replace(SMALL, isolation=some_kind, capacity=1)
    pids = []
    async with ResourceEngine() as engine:

        async def failing(name: str) -> None:
            async with engine.lease(spec, holder=name) as leases:
                sandbox = leases.find(SandboxSpec)
                pids.append(sandbox.pid)
                assert await sandbox.list() == []
                await sandbox.write("trace", "of this rollout")
                raise RuntimeError("the rollout failed")

        for name in ("r0", "r1"):
            with pytest.raises(RuntimeError, match="the rollout failed"):
                await failing(name)
    assert pids[0] != pids[1]
    assert not any(map(is_alive, pids))


async def test_specs_that_differ_never_share_a_sandbox() -> None:
    assert SMALL.key != replace(SMALL, memory_mb=129).key != replace(SMALL, env={"A": "b"}).key
    assert replace(SMALL, env={"A": "1", "B": "2"}).key == replace(SMALL, env={"B": "2", "A": "1"}).key
