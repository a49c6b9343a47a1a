"""A model ready to be sampled: weights, renderer, engine or remote server, and the adapter of a finished run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sortie.core.errors import UsageError
from sortie.core.policy import PolicyVersion
from sortie.core.run_folder import RunFolder
from sortie.inference.client import SamplingClient
from sortie.inference.embedded.config import EngineConfig
from sortie.inference.renderers.base import Renderer

if TYPE_CHECKING:
    from sortie.inference.embedded.engine import EmbeddedEngine
    from sortie.models.decoder import Decoder

REMOTE = "openai:"
"""Prefix of models served elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Everything a rollout needs of a model."""

    model_name: str
    client: SamplingClient
    renderer: Renderer
    window: int | None = None
    """Most tokens of one row the model can take; None: the server's business."""
    policy: PolicyVersion | None = None
    """Version to sample from; None: the base model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSession(Session):
    """A session on this machine, whose parts a trainer can share."""

    folder: Path
    decoder: Decoder
    engine: EmbeddedEngine


@asynccontextmanager
async def open_session(
    model: str,
    *,
    run: RunFolder | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    threads: int | None = None,
    renderer: str = "auto",
    base_url: str | None = None,
    engine: EngineConfig | None = None,
) -> AsyncIterator[Session]:
    """Open `model` (name, folder, hub id or `openai:NAME`), with the last checkpoint of `run` if one is given.

    Raises: UsageError if the model, the run's checkpoint or the server's key is missing.
    """
    if model.startswith(REMOTE):
        if run is not None:
            raise UsageError(f"{model!r} is served elsewhere: a run's adapter cannot be loaded into it")
        async with _remote(model.removeprefix(REMOTE), base_url) as session:
            yield session
        return
    if base_url is not None:
        raise UsageError(f"--base-url has no effect on the local model {model!r}; write the model as {REMOTE}NAME")
    async with open_local(
        model, dtype=dtype, device=device, threads=threads, renderer=renderer, engine=engine, run=run
    ) as local:
        yield local


@asynccontextmanager
async def open_local(
    model: str,
    *,
    dtype: str = "float32",
    device: str = "cpu",
    threads: int | None = None,
    renderer: str = "auto",
    engine: EngineConfig | None = None,
    run: RunFolder | None = None,
    tools: bool = False,
) -> AsyncIterator[LocalSession]:
    """Load a model into the embedded engine. With `tools`, a chat template that would drop tool calls is refused."""
    from sortie import models
    from sortie.inference.embedded.engine import EmbeddedEngine
    from sortie.inference.renderers import renderer_for
    from sortie.models.placement import place

    folder = await asyncio.to_thread(models.resolve, model)
    made = renderer_for(folder, renderer, tools=tools)
    decoder = await asyncio.to_thread(place, folder, dtype=dtype, device=device, threads=threads)
    async with EmbeddedEngine(decoder, engine, decode=made.decode) as embedded:
        policy = await _load_adapter(run, decoder, embedded) if run is not None else None
        yield LocalSession(
            model_name=model,
            client=embedded,
            renderer=made,
            window=decoder.config.max_positions,
            policy=policy,
            folder=folder,
            decoder=decoder,
            engine=embedded,
        )


async def _load_adapter(run: RunFolder, decoder: Decoder, engine: EmbeddedEngine) -> PolicyVersion:
    from sortie.training.checkpoints import lora_of

    lora, version = lora_of(last_checkpoint(run), decoder.config)
    await engine.publish(version, lora)
    return version


def last_checkpoint(run: RunFolder) -> Path:
    """The checkpoint of the newest committed step.

    Raises: UsageError if the run has none yet.
    """
    step = run.committed_step()
    if step == 0:
        raise UsageError(f"run {run.name!r} has no checkpoint yet: it needs at least one finished step")
    return run.checkpoint_dir / f"step-{step}"


@asynccontextmanager
async def _remote(name: str, base_url: str | None) -> AsyncIterator[Session]:
    from sortie.inference.compatible import ChatServer
    from sortie.inference.renderers.messages import MessageRenderer

    server = ChatServer(name, base_url=base_url)
    try:
        yield Session(model_name=f"{REMOTE}{name}", client=server, renderer=MessageRenderer())
    finally:
        await server.aclose()
