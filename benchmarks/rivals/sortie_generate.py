"""Our side of benchmarks.decode: the embedded engine, in a process of its own, with the adapter published to it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.rivals.channel import Channel
from sortie.core.completion import SamplingParams
from sortie.core.policy import PolicyVersion
from sortie.inference.client import SampleRequest
from sortie.inference.embedded.engine import EmbeddedEngine
from sortie.models.export import read_adapter
from sortie.models.placement import place


async def generate(
    engine: EmbeddedEngine, prompts: list[list[int]], tokens: int, policy: PolicyVersion | None
) -> dict[str, Any]:
    """`tokens` more for each prompt; seconds, and how many tokens and logprobs came out."""
    started = time.perf_counter()
    answers = await asyncio.gather(
        *(
            engine.sample(SampleRequest(prompt=p, params=SamplingParams(max_tokens=tokens, seed=i), policy=policy))
            for i, p in enumerate(prompts)
        )
    )
    seconds = time.perf_counter() - started
    done = [completion for (completion,) in answers]
    return {
        "seconds": seconds,
        "drawn": sum(len(c.token_ids) for c in done),
        "logprobs": sum(len(c.logprobs or ()) for c in done),
    }


async def serve(channel: Channel, settings: dict[str, Any]) -> None:
    decoder = place(Path(settings["model"]), dtype=settings["dtype"])
    async with EmbeddedEngine(decoder) as engine:
        lora = read_adapter(Path(settings["adapter"]), decoder.config)
        policy = PolicyVersion("bench", 1, lora.digest())
        await engine.publish(policy, lora)
        channel.send(threads=torch.get_num_threads())
        while (order := await asyncio.to_thread(channel.receive)) is not None:
            pinned = policy if order["adapted"] else None
            channel.send(**await generate(engine, order["prompts"], order["tokens"], pinned))


if __name__ == "__main__":
    asyncio.run(serve(Channel(), json.loads(sys.argv[1])))
