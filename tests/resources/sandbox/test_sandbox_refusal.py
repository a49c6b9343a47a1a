"""Where there is no isolation there is no sandbox, unless none is asked for by name."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from sandboxes import opened

from sortie.core.errors import ConfigError, UsageError
from sortie.resources.kinds.sandbox import commands, launch
from sortie.resources.kinds.sandbox.spec import SandboxSpec


async def test_without_any_isolation_it_is_refused_with_the_reasons_and_the_ways_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commands, "_FOLDERS", ())
    monkeypatch.setattr(launch, "_found", None)
    with pytest.raises(UsageError) as caught:
        await SandboxSpec().start()
    assert str(caught.value) == (
        "no sandbox can be isolated here (bubblewrap: bwrap is not installed; namespaces: unshare is not installed). "
        "Install bubblewrap (apt-get install bubblewrap) and allow user namespaces, or accept none with "
        "isolation='none'"
    )


@pytest.mark.parametrize(
    ("kind", "trial"),
    [
        ("bubblewrap", ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"]),
        ("namespaces", ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--net", "true"]),
    ],
)
async def test_what_this_machine_can_isolate_is_found(kind: str, trial: list[str]) -> None:
    """So that the tests of a kind are not skipped because Sortie broke it."""
    try:
        process = await asyncio.create_subprocess_exec(*trial, stderr=asyncio.subprocess.DEVNULL)
    except FileNotFoundError:
        pytest.skip(f"NOT TESTED: {trial[0]} is not installed")
    if await process.wait() != 0:
        pytest.skip(f"NOT TESTED: {trial[0]} does not work on this machine")
    assert (await launch.available())[kind] is None


async def test_namespaces_are_taken_where_bubblewrap_does_not_work(
    monkeypatch: pytest.MonkeyPatch, some_kind: str
) -> None:
    monkeypatch.setattr(launch, "_found", None)
    broken = {"bubblewrap": ["/bin/false"], "namespaces": commands.build(some_kind, 1 << 20)}
    monkeypatch.setattr(commands, "build", lambda kind, disk_bytes: broken[kind])
    if some_kind == "bubblewrap":
        broken["namespaces"], broken["bubblewrap"] = commands._namespaces(), ["/bin/false"]
    async with opened("auto") as sandbox:
        assert sandbox.isolation == "namespaces"


async def test_a_launcher_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "build", lambda kind, disk_bytes: ["/bin/sh", "-c", "echo not permitted >&2; exit 1"])
    with pytest.raises(UsageError, match=r"\(bubblewrap: not permitted\)"):
        await SandboxSpec(isolation="bubblewrap").start()


async def test_isolation_none_keeps_the_limits_and_says_that_nothing_is_protected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, logger="sortie"):
        async with opened("none") as sandbox:
            assert (await sandbox.python("x = [i for i in range(3)]\nprint(x)")).output == "[0, 1, 2]\n"
            assert "MemoryError" in (await sandbox.python("b = bytearray(256 << 20)")).output
            hung = await sandbox.run(["sh", "-c", "trap '' TERM; (trap '' TERM; sleep 60) & sleep 60"], timeout_s=0.5)
            assert hung.killed_reason == "time: 0.5 s"
            await sandbox.write("a", "b")
            assert await sandbox.read("a") == "b"
            assert "PATH" in (env := (await sandbox.run(["env"])).output)
            assert "PYTEST" not in env
    assert "isolation='none': limits only" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"network": True}, "network must be False"),
        ({"memory_mb": 8}, "memory_mb must be at least 32, got 8"),
        ({"processes": 0}, "processes must be positive, got 0"),
        ({"wall_s": 0.0}, "wall_s must be positive"),
        ({"cores": 0}, "cores must be at least 1"),
        ({"isolation": "docker"}, "isolation must be auto, bubblewrap, namespaces or none, got 'docker'"),
        ({"capacity": 0}, "capacity must be at least 1"),
    ],
)
def test_nonsense_is_refused_when_the_spec_is_made(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SandboxSpec(**options)
