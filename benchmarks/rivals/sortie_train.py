"""Our side of benchmarks.train: the local trainer, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.rivals.channel import Channel, forget_peak, peak_mib, resident_mib
from benchmarks.rivals.trajectories import CLIP, NOISE, Pattern, Trajectories, agent_rows, group_advantages
from sortie.core.datum import Datum
from sortie.core.policy import LoraConfig
from sortie.core.trajectory import Row
from sortie.models.placement import place
from sortie.models.tokenizer import load_tokenizer
from sortie.training.batching import policy_datum
from sortie.training.client import AdamParams
from sortie.training.config import TrainerConfig
from sortie.training.local import LocalTrainer, LocalTrainingClient

LORA = LoraConfig(rank=16, alpha=32.0)
OPTIM = AdamParams(lr=1e-6)
"""Small, so that every round computes the same losses on both sides."""
B_SCALE = 0.01
"""Standard deviation of B: as in the middle of a training, since with B = 0 half of the gradient would be 0."""
LOSS = {**CLIP, "temperature": 1.0}


def data_of(trajectories: Trajectories) -> list[Datum]:
    """The rows as the loop's own batching makes them."""
    mask = trajectories.mask.tolist()
    return [
        policy_datum(
            Row(token_ids=tokens.tolist(), mask=mask, logprobs=logprobs.tolist(), kinds=[]),
            float(advantage),
            trajectories.weight,
        )
        for tokens, logprobs, advantage in zip(
            trajectories.tokens, trajectories.logprobs, trajectories.advantages, strict=True
        )
    ]


def open_trainer(settings: dict[str, Any]) -> LocalTrainingClient:
    """Model and a fresh adapter, with B drawn at random."""
    decoder = place(Path(settings["model"]), dtype=settings["dtype"])
    trainer = LocalTrainer(decoder, TrainerConfig(**settings.get("trainer", {})), folder=Path(settings["scratch"]))
    client = trainer.create_adapter(LORA, seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, tensor in sorted(client.lora.tensors.items()):
            if name.endswith(".B"):
                tensor.copy_(torch.empty_like(tensor).normal_(0.0, B_SCALE, generator=generator))
    return client


async def prepare(client: LocalTrainingClient, settings: dict[str, Any], order: dict[str, Any]) -> dict[str, Any]:
    """Write the rows of `order` with their behaviour logprobs, and the adapter that both sides start from."""
    pattern, shape = Pattern(), (order["groups"], order["group_size"])
    text = load_tokenizer(settings["model"]).encode(order["text"], specials=False)
    tokens = agent_rows(text, *shape, pattern)
    blank = np.zeros(tokens.shape, dtype=np.float32)
    rows = Trajectories(tokens, pattern.mask, blank, group_advantages(*shape))
    passed = await client.forward(data_of(rows), "ppo", LOSS)
    logprobs = np.stack([np.concatenate([[0.0], row]) for row in passed.logprobs]).astype(np.float32)
    logprobs += np.random.default_rng(2).normal(0.0, NOISE, logprobs.shape).astype(np.float32)
    Trajectories(tokens, pattern.mask, logprobs, rows.advantages).save(Path(order["rows"]))
    np.savez(order["adapter"], **{name: tensor.detach().numpy() for name, tensor in client.lora.tensors.items()})
    return {"rows": len(tokens)}


async def step(client: LocalTrainingClient, trajectories: Trajectories) -> dict[str, Any]:
    """Gradients of all rows and one optimiser step."""
    started = time.perf_counter()
    data = data_of(trajectories)
    passed = await client.forward_backward(data, "ppo", LOSS)
    moved = await client.optim_step(OPTIM)
    return {
        "seconds": time.perf_counter() - started,
        "loss": passed.loss,
        "grad_norm": moved.grad_norm,
        "clipped": passed.metrics["clipped"],
        "trained_tokens": passed.metrics["tokens"],
        "computed_tokens": passed.metrics["computed_tokens"],
        "peak_mib": peak_mib(),
    }


async def main(channel: Channel, settings: dict[str, Any]) -> None:
    client = open_trainer(settings)
    forget_peak()
    channel.send(loaded_mib=resident_mib())
    while (order := channel.receive()) is not None:
        if order["do"] == "prepare":
            channel.send(**await prepare(client, settings, order))
        else:
            channel.send(**await step(client, Trajectories.load(Path(order["path"])).first(order["rows"])))
    client.trainer.close()


if __name__ == "__main__":
    asyncio.run(main(Channel(), json.loads(sys.argv[1])))
