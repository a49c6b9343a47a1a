"""The event that says when a run drew its first token."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from sortie.core.run_folder import RunFolder
from sortie.orchestrator.first_token import first_token_noted


@dataclass
class Engine:
    decoded_tokens: int = 0


def kinds(folder: RunFolder) -> list[str]:
    return [event["kind"] for event in folder.events()]


async def test_it_is_noted_once_and_not_before_a_token_is_drawn(tmp_path: Path) -> None:
    engine = Engine()
    with RunFolder.create(tmp_path, "r", stem="r") as folder:
        async with first_token_noted(engine, folder), asyncio.timeout(10):
            before = kinds(folder)
            engine.decoded_tokens = 1
            while "first_token" not in kinds(folder):  # noqa: ASYNC110  # the file is what is looked at
                await asyncio.sleep(0)
            engine.decoded_tokens = 2
        assert kinds(folder) == [*before, "first_token"]


async def test_a_run_that_draws_nothing_ends_without_it(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, "r", stem="r") as folder:
        async with first_token_noted(Engine(), folder):
            pass
        assert "first_token" not in kinds(folder)
