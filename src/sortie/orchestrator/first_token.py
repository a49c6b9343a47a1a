"""When the first token of a run was drawn: what one waits for after starting it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from sortie.core.run_folder import RunFolder

LOOK_EVERY_S = 0.02


class Drawing(Protocol):
    """What draws."""

    decoded_tokens: int
    """Tokens drawn since its start."""


@asynccontextmanager
async def first_token_noted(engine: Drawing, folder: RunFolder) -> AsyncIterator[None]:
    """Append the event `first_token` to the run once, when the engine has drawn something."""

    async def note() -> None:
        while not engine.decoded_tokens:  # noqa: ASYNC110  # the engine's thread knows no event loop
            await asyncio.sleep(LOOK_EVERY_S)
        folder.append_event("first_token")

    noting = asyncio.create_task(note())
    try:
        yield
    finally:
        noting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await noting
