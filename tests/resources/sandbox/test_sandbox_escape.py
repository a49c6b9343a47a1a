"""Hostile code in a sandbox: what it can reach, and what it can use up.

Every bomb first proves that the limit it attacks is in force, and stays small.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from sandboxes import host_processes, opened

from sortie.resources.kinds.sandbox.sandbox import Sandbox


async def test_it_reaches_no_network_and_no_host_of_its_machine(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=5).close()  # it does listen
        result = await sandbox.python(f"""
import os, socket
def attempt(family, address):
    try:
        with socket.socket(family) as s:
            s.settimeout(2)
            s.connect(address)
        return "connected"
    except OSError as error:
        return type(error).__name__
print(attempt(socket.AF_INET, ("127.0.0.1", {port})), attempt(socket.AF_INET, ("192.0.2.1", 80)))
interfaces = [line.split(":")[0].strip() for line in list(open("/proc/net/dev"))[2:]]
print(attempt(socket.AF_VSOCK, (2, 1024)), interfaces)
""")
    first, second = result.output.splitlines()
    assert "connected" not in result.output
    assert first.split()[1] == "OSError"  # unreachable, not a time-out
    assert second == "OSError ['lo']"


async def test_it_sees_no_file_of_the_host_beyond_the_system_and_writes_to_none(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the host's")
    result = await sandbox.python(f"""
import os
unseen = ({str(secret)!r}, {__file__!r}, "/etc/passwd", "/etc/shadow", "/var", "/sys", "/run")
print([os.path.exists(path) for path in unseen])
def denied(path):
    try:
        open(path, "w")
    except OSError:
        return True
places = ("/", "/usr", "/usr/bin", "/etc", "/dev", "/opt", "/opt/sortie/inside", "/proc", "/box/..")
print([denied(os.path.join(place, "x")) for place in places])
print(os.listdir("/tmp"), os.listdir("."))
""")
    assert result.output.splitlines() == [str([False] * 7), str([True] * 9), "[] []"]


async def test_it_sees_its_own_processes_only_and_nothing_of_the_first_one(sandbox: Sandbox) -> None:
    result = await sandbox.python(f"""
import os
print(len([n for n in os.listdir("/proc") if n.isdigit()]), os.path.exists("/proc/{os.getpid()}"))
def denied(path):
    try:
        open(path, "rb").read(1)
    except OSError:
        return True
print([denied("/proc/1/" + name) for name in ("environ", "mem", "maps", "fd/0", "fd/1", "root/x", "cwd/x")])
""")
    assert result.output.splitlines() == ["2 False", str([True] * 7)]


async def test_it_has_no_capability_and_cannot_gain_one(sandbox: Sandbox) -> None:
    result = await sandbox.run(["sh", "-c", "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"])
    values = dict(line.split(":\t") for line in result.output.splitlines())
    assert {values.pop("NoNewPrivs"), values.pop("Seccomp")} == {"1", "2"}
    assert set(values.values()) == {"0" * 16}
    assert len(values) == 5


async def test_it_makes_no_namespace_no_mount_and_traces_nobody(sandbox: Sandbox) -> None:
    result = await sandbox.python("""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def error(name, *arguments):
    return os.strerror(ctypes.get_errno()) if getattr(libc, name)(*arguments) == -1 else "done"
NEW_USER = 0x10000000
mount = error("mount", b"none", b"/box/tmp", b"tmpfs", 0, None)
print(error("unshare", NEW_USER), mount, error("ptrace", 16, 1, 0, 0))
print(error("syscall", 56 if os.uname().machine == "x86_64" else 220, NEW_USER | 17, 0, 0, 0, 0))
print(error("syscall", 435, 0, 0), os.getuid() == os.geteuid())
""")
    refused = "Operation not permitted"
    assert result.output.splitlines() == [f"{refused} {refused} {refused}", refused, "Function not implemented True"]


async def test_memory_that_no_process_maps_is_refused(sandbox: Sandbox) -> None:
    result = await sandbox.python("""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.shmget(0, 1 << 20, 0o1666), os.strerror(ctypes.get_errno()))
try:
    os.memfd_create("x")
except OSError as error:
    print(error.strerror)
""")
    assert result.output.splitlines() == ["-1 Operation not permitted", "Operation not permitted"]


async def test_a_fork_bomb_stays_within_the_process_limit(sandbox: Sandbox) -> None:
    limit = await sandbox.python("import resource; print(resource.getrlimit(resource.RLIMIT_NPROC)[1])")
    assert 0 < int(limit.output) <= sandbox.spec.processes + 1
    attempt = await sandbox.python("""
import os, time
started = 0
for _ in range(100):
    try:
        if os.fork() == 0:
            time.sleep(30)
    except BlockingIOError:
        break
    started += 1
print(started, flush=True)
os._exit(0)
""")
    assert 0 < int(attempt.output) <= sandbox.spec.processes
    bomb = await sandbox.run(["sh", "-c", "b() { b | b & }; b; sleep 30"], timeout_s=1.0)
    assert bomb.killed_reason is not None
    assert (await sandbox.run(["echo", "well"])).output == "well\n"
    assert len(host_processes(sandbox.pid)) <= 1


async def test_threads_count_as_processes(sandbox: Sandbox) -> None:
    result = await sandbox.python("""
import threading
stop = threading.Event()
threading.stack_size(65536)
try:
    for number in range(100):
        threading.Thread(target=stop.wait, daemon=True).start()
except RuntimeError:
    print(number)
""")
    assert int(result.output) <= sandbox.spec.processes


async def test_one_process_gets_no_more_memory_than_allowed(sandbox: Sandbox) -> None:
    result = await sandbox.python("b = bytearray(256 << 20)")
    assert "MemoryError" in result.output
    assert result.killed_reason is None


async def test_a_memory_bomb_spread_over_children_is_ended(sandbox: Sandbox) -> None:
    limit = await sandbox.python("import resource; print(resource.getrlimit(resource.RLIMIT_AS)[1] >> 20)")
    assert int(limit.output) == 128
    result = await sandbox.python("""
import os, time
for _ in range(4):  # four times 60 MB: each within the limit, together not
    if os.fork() == 0:
        block = bytearray(60 << 20)
        for i in range(0, len(block), 4096):
            block[i] = 1
        time.sleep(30)
time.sleep(30)
""")
    assert result.killed_reason is not None
    assert result.killed_reason.startswith("memory: ")
    assert result.killed_reason.endswith(" MB in use, 128 MB allowed")
    assert not result.timed_out


async def test_memory_shared_by_forks_counts_once(sandbox: Sandbox) -> None:
    result = await sandbox.python("""
import os
block = bytearray(b"x") * (40 << 20)
readers = []
for _ in range(4):
    go, done = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.write(done[1], bytes([sum(block[::4096]) % 256]))
        os.read(go[0], 1)
        os._exit(0)
    readers.append((go, done))
for _, done in readers:
    os.read(done[0], 1)
import time
time.sleep(0.1)
for go, _ in readers:
    os.write(go[1], b".")
print("fine")
""")
    assert (result.output, result.killed_reason) == ("fine\n", None)


async def test_starting_programs_from_a_large_process_does_not_count_its_memory_twice(sandbox: Sandbox) -> None:
    result = await sandbox.python("""
import subprocess
block = bytearray(b"x") * (80 << 20)
for _ in range(100):
    subprocess.run(["/bin/true"], check=True)
print("fine")
""")
    assert (result.output, result.killed_reason) == ("fine\n", None)


async def test_files_end_at_the_size_of_the_disk_and_of_one_file(sandbox: Sandbox) -> None:
    result = await sandbox.python("""
import errno, os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill(path):
    written = 0
    try:
        with open(path, "wb", buffering=0) as file:
            while True:
                written += file.write(bytes(1 << 16))
    except OSError as error:
        return written >> 20, errno.errorcode[error.errno]
sizes = [fill(f"file{i}") for i in range(5)]
print(sizes[0], sizes[-1], sum(size for size, _ in sizes) <= 8, fill("/tmp/x"))
""")
    assert result.output == "(4, 'EFBIG') (0, 'ENOSPC') True (0, 'ENOSPC')\n"
    with pytest.raises(OSError, match="No space left"):
        await sandbox.write("one more", "x" * 100_000)


async def test_a_flood_of_empty_files_is_ended(sandbox: Sandbox) -> None:
    result = await sandbox.python("""
for number in range(20_000):
    open(f"f{number}", "w").close()
print("all made")
""")
    assert "all made" not in result.output
    assert result.killed_reason == "files: 16384 allowed" or "No space left" in result.output
    assert (await sandbox.read("f0")) == ""  # still open to a look from outside


async def test_signals_reach_neither_the_first_process_nor_the_host(sandbox: Sandbox) -> None:
    few = await sandbox.python("import os; print(sum(name.isdigit() for name in os.listdir('/proc')))")
    assert few.output == "2\n"  # the first process and this one: -1 reaches nobody else
    result = await sandbox.python(f"""
import os, signal
for pid in (1, {os.getpid()}, {sandbox.pid}, -1):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGSTOP, signal.SIGHUP):
        if pid == -1 and number != signal.SIGHUP:
            continue
        try:
            os.kill(pid, number)
        except OSError:
            pass
try:
    os.kill(1, signal.SIGKILL)
except OSError:
    pass
print("still here")
""")
    assert result.exit_code in (0, -1)
    assert (await sandbox.run(["echo", "well"])).output == "well\n"


async def test_links_lead_neither_reads_nor_writes_out(sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the host's")
    await sandbox.python(f"""
import os
os.symlink({str(secret)!r}, "secret")
os.symlink("/proc/1/environ", "environ")
os.symlink("/usr/bin", "programs")
os.symlink("/", "out")
os.mkfifo("pipe")
""")
    for path in ("secret", "environ", "../../" + str(secret), f"out{secret}", "pipe", "nul\0l"):
        with pytest.raises(OSError, match=r"\[Errno"):
            await sandbox.read(path)
    for path in ("secret", "programs/new", "out/new"):
        with pytest.raises(OSError, match=r"\[Errno"):
            await sandbox.write(path, "changed")
    assert secret.read_text() == "the host's"


async def test_no_variable_of_the_host_is_there(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SORTIE_TEST_SECRET", "hidden")
    async with opened(kind, env={"WANTED": "yes"}) as sandbox:
        result = await sandbox.run(["env"])
        everywhere = await sandbox.run(["sh", "-c", "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"])
    names = {line.partition("=")[0] for line in result.output.splitlines()}
    assert names == {"PATH", "HOME", "TMPDIR", "LANG", "PYTHONUNBUFFERED", "MALLOC_ARENA_MAX", "WANTED"}
    assert "SORTIE_TEST_SECRET" not in everywhere.output


async def test_after_a_time_out_a_grandchild_that_ignores_sigterm_is_gone(sandbox: Sandbox) -> None:
    """Pain D1, D13."""
    await sandbox.write(
        "stubborn.py",
        """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("grandchild", flush=True)
        while True:
            time.sleep(30)
    os._exit(0)
while True:
    time.sleep(30)
""",
    )
    before = host_processes(sandbox.pid)
    result = await sandbox.run(["python", "stubborn.py"], timeout_s=1.5)
    assert (result.output, result.exit_code) == ("grandchild\n", -9)
    assert result.timed_out
    assert result.killed_reason == "time: 1.5 s"
    assert host_processes(sandbox.pid) == before


async def test_processor_time_counts_over_all_processes(kind: str) -> None:
    """Pain D1."""
    async with opened(kind, cpu_seconds=0.5) as sandbox:
        result = await sandbox.python("""
import os
for _ in range(200):  # each far within the limit
    if os.fork() == 0:
        for _ in range(400_000):
            pass
        os._exit(0)
    os.wait()
print("all")
""")
    assert result.killed_reason == "cpu: 0.5 s of processor time"
    assert not result.timed_out


async def test_it_runs_on_no_more_cores_than_allowed(kind: str) -> None:
    async with opened(kind, cores=1) as sandbox:
        result = await sandbox.python("""
import os
print(len(os.sched_getaffinity(0)))
try:
    os.sched_setaffinity(0, range(os.cpu_count()))
except OSError as error:
    print(error.strerror)
""")
    assert result.output == "1\nOperation not permitted\n"


async def test_a_flood_of_output_is_cut(sandbox: Sandbox) -> None:
    result = await sandbox.run(["sh", "-c", "yes | head -c 3000000"])
    assert result.output.endswith(f"[{3_000_000 - (1 << 20)} more bytes]")
    assert len(result.output) < (1 << 20) + 100
