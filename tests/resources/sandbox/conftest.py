"""Sandboxes of each kind that this machine can isolate. What it cannot is skipped with the reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import cache

import pytest
from sandboxes import opened

from sortie.resources.kinds.sandbox.launch import KINDS, available
from sortie.resources.kinds.sandbox.sandbox import Sandbox


@cache
def reasons() -> dict[str, str | None]:
    return asyncio.run(available())


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each isolation of this machine."""
    reason = reasons()[request.param]
    if reason is not None:
        pytest.skip(f"NOT TESTED: isolation {request.param!r} does not work on this machine: {reason}")
    return str(request.param)


@pytest.fixture
def some_kind() -> str:
    """The isolation that `auto` chooses."""
    for name in KINDS:
        if reasons()[name] is None:
            return name
    pytest.skip(f"NOT TESTED: no isolation works on this machine: {reasons()}")


@pytest.fixture
async def sandbox(kind: str) -> AsyncIterator[Sandbox]:
    async with opened(kind) as started:
        yield started
