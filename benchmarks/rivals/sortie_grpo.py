"""Our side of benchmarks.grpo_step: the training loop of `sortie train`, one `train_step` when asked.

Everything a step of a real run does is in it: scheduler, rollouts, reward, journal, batching, loss, optimiser,
publishing to the engine, checkpoint, canaries. Only the renderer is changed: no token ends a turn, so that all have
full length.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.rivals.channel import Channel, forget_peak, peak_mib, resident_mib
from benchmarks.rivals.words import ALPHA, BETAS, CLIP, EPS, LR, PROMPTS, RANK, vowel_share
from sortie.agents.react import ReAct
from sortie.agents.reward import reward
from sortie.context.limits import Limits
from sortie.core.policy import LoraConfig
from sortie.core.run_folder import RunFolder
from sortie.core.trajectory import Trajectory
from sortie.envs import Env
from sortie.inference.renderers.choose import RENDERERS
from sortie.inference.renderers.smollm import SmolLMRenderer
from sortie.orchestrator.config import Options, RolloutConfig, RunConfig
from sortie.orchestrator.loop import Run, open_run, train_step
from sortie.orchestrator.resume import restore
from sortie.training.client import AdamParams
from sortie.training.config import LossConfig

ENDLESS = "smollm-endless"


class EndlessRenderer(SmolLMRenderer):
    """SmolLM2's, with turns that only their limit ends."""

    @property
    def stop_ids(self) -> tuple[int, ...]:
        return ()


@reward(inline=True)
def vowels(trajectory: Trajectory) -> float:
    """Of the one turn, which its limit cut."""
    message = trajectory.nodes[-1].message
    return vowel_share(message.content if message else "")


def environment(prompts: int) -> Env:
    """The first `prompts` tasks."""
    rows = [{"prompt": text} for text in PROMPTS[:prompts]]
    return Env(
        "words",
        tasks=rows,
        heldout=[{"prompt": "Say something about the sea."}],
        rewards=[vowels],
        agent=ReAct(max_turns=1),
        system=None,
    )


def run_config(settings: dict[str, Any]) -> RunConfig:
    """The run file."""
    new = settings["new_tokens"]
    return RunConfig(
        model=settings["model"],
        steps=1_000_000,
        dtype=settings["dtype"],
        renderer=ENDLESS,
        lora=LoraConfig(rank=RANK, alpha=ALPHA),
        rollouts=RolloutConfig(
            groups=settings["prompts"],
            group_size=settings["group_size"],
            limits=Limits(turn_tokens=new, rollout_tokens=new),
        ),
        scheduler=Options(name="uniform"),
        optim=AdamParams(lr=LR, beta1=BETAS[0], beta2=BETAS[1], eps=EPS, weight_decay=0.0, grad_clip=1.0),
        loss=LossConfig(clip_low=CLIP[0], clip_high=CLIP[1], advantage="group_mean"),
        env=(Options(name="words"),),
    )


async def step(run: Run) -> dict[str, Any]:
    """One step of the loop, and the work it did."""
    before = run.session.engine.metrics()["prefilled_tokens"]
    started = time.perf_counter()
    await train_step(run)
    took = time.perf_counter() - started
    metrics = run.folder.metrics()[-1]
    nodes = [n for record in run.folder.trajectories(run.step) for n in record.trajectory.nodes]
    return {
        "seconds": took,
        "rollout_s": metrics["rollout_s"],
        "train_s": metrics["train_s"],
        "prompt_tokens": sum(len(n.token_ids) for n in nodes if n.kind == "prompt"),
        "sampled_tokens": sum(len(n.token_ids) for n in nodes if n.kind == "sampled"),
        "trained_tokens": metrics["trainable_tokens"],
        "prefilled_tokens": run.session.engine.metrics()["prefilled_tokens"] - before,
        "grad_norm": metrics["grad_norm"],
        "ratio": metrics["train/ratio"],
        "mismatch_max": metrics["train/mismatch_max"],
        "peak_mib": peak_mib(),
    }


async def main(channel: Channel, settings: dict[str, Any]) -> None:
    RENDERERS.register(ENDLESS)(EndlessRenderer)
    config, env = run_config(settings), environment(settings["prompts"])
    with RunFolder.create(Path(settings["scratch"]), settings["name"]) as folder:
        folder.write_config(config.to_toml())
        async with open_run(config, [env], folder, lambda line: print(line, file=sys.stderr)) as run:
            await restore(run)
            forget_peak()
            channel.send(loaded_mib=resident_mib())
            while await asyncio.to_thread(channel.receive) is not None:
                channel.send(**await step(run))


if __name__ == "__main__":
    asyncio.run(main(Channel(), json.loads(sys.argv[1])))
