"""Sandboxes for the environments that need one."""

from __future__ import annotations

import asyncio

import pytest

from sortie.resources.kinds.sandbox.launch import available


@pytest.fixture(scope="session")
def isolation() -> None:
    """Skips where this machine isolates nothing."""
    reasons = asyncio.run(available())
    if all(reason is not None for reason in reasons.values()):
        pytest.skip(f"NOT TESTED: no isolation works on this machine: {reasons}")
