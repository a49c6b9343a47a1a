"""Rollouts per second of a fixed agent pattern: Sortie's embedded engine against vLLM behind the same agents.

The pattern: groups of 8 on one prompt of 200 tokens, three turns of 40 drawn tokens, 60 tokens of observation after
each but the last, given after a tool latency of 0 or 50 ms. All groups run at once. Equal for both: SmolLM2-135M in
bfloat16 (Sortie also in float32), the machine's cores, RolloutEngine, agent, tasks and token ids in and out; the same
active adapter; temperature 1 with logprobs; turns that never end early; at most 64 rows at a time; prefix caches on,
1 GiB of KV each; prompts that are new in every repeat, so that only a pattern's own tokens are found again.

Not equal: Sortie samples in this process, vLLM through CompletionServer and HTTP, without a seed (vLLM 0.32's CPU
build dies of one when it computes a prompt in pieces). Tokens drawn differ, so an observation after a turn that
happens to end with the end-of-turn token is one token shorter. `vllm, merged` stands for a user who merges the
adapter into vLLM's weights after every step: a server of the base model, without the time that merging and loading
take.

`distinct` is what a perfect prefix cache computes for prompts: their tokens, each distinct prefix once, less what was
computed while drawing. `prefilled` is what was computed: the engine's own counter, and for vLLM its prompt tokens
less those it found in its cache. `work` is prompt and drawn tokens of a side over Sortie's in bfloat16.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.pattern import DRAWN, GROUP, LIMITS, TURNS, Endless, PrefixSet, make_env, sent
from benchmarks.report import arguments, command, publish, unmeasured
from benchmarks.rivals import turns
from benchmarks.rivals.adapter import RANK, make_adapter
from benchmarks.rivals.venv import RivalError
from benchmarks.rivals.vllm_server import ADAPTER, BASE, VllmServer
from sortie import models
from sortie.core.group import Assignment
from sortie.core.policy import PolicyVersion
from sortie.core.trajectory import Trajectory
from sortie.inference.client import SamplingClient
from sortie.inference.compatible import CompletionServer
from sortie.inference.embedded.engine import EmbeddedEngine
from sortie.inference.renderers import renderer_for
from sortie.models.export import read_adapter
from sortie.models.placement import place
from sortie.rollouts.engine import RolloutEngine

MODEL = "smollm2-135m"
LATENCIES_S = (0.0, 0.05)
OURS, THEIRS = "sortie bf16", "vllm"
TARGET = 1.5
SAME = 0.01
"""Share by which the work of two sides may differ before the comparison is called off."""


@dataclass(frozen=True, slots=True)
class Side:
    """One way to serve the agents."""

    name: str
    client: SamplingClient
    prefilled: Callable[[], float]
    """Prompt tokens computed since the start."""
    policy: PolicyVersion | None = None
    awake: Callable[[], AbstractContextManager[object]] = nullcontext
    """Entered while it works."""
    computed: PrefixSet = field(default_factory=PrefixSet)


@dataclass(frozen=True, slots=True)
class Round:
    """What one side did once."""

    seconds: float
    rollouts: int
    prompts: int
    """Tokens of all prompts sent."""
    drawn: int
    prefilled: int
    distinct: int

    @property
    def work(self) -> int:
        """Tokens asked and drawn, whatever was found in a cache."""
        return self.prompts + self.drawn


async def one_round(side: Side, renderer: Endless, *, groups: int, latency_s: float, repeat: int) -> Round:
    """All groups at once, from the first prompt to the last reward.

    Raises: RivalError if a rollout failed, or a turn was not drawn to its length with logprobs.
    """
    env = make_env(renderer, groups=groups, latency_s=latency_s, key=f"{latency_s}/{repeat}")
    tasks = env.tasks("train")
    with side.awake():
        before = side.prefilled()
        async with RolloutEngine(side.client, renderer, limits=LIMITS, run_seed=repeat) as engine:
            started = time.perf_counter()
            done = await asyncio.gather(
                *(
                    engine.run_group(env, task, Assignment(i, task.key, GROUP), policy=side.policy)
                    for i, task in enumerate(tasks)
                )
            )
            seconds = time.perf_counter() - started
        prefilled = side.prefilled() - before
    trajectories = [trajectory for group in done for trajectory in group.trajectories]
    for trajectory in trajectories:
        check(side.name, trajectory)
    return Round(
        seconds=seconds,
        rollouts=len(trajectories),
        prompts=sum(map(sent, trajectories)),
        drawn=sum(t.sampled_tokens for t in trajectories),
        prefilled=round(prefilled),
        distinct=side.computed.prompted(trajectories),
    )


def check(name: str, trajectory: Trajectory) -> None:
    """Raises: RivalError if the rollout is not what the pattern says."""
    if trajectory.error is not None:
        raise RivalError(f"a rollout through {name} failed: {trajectory.error}")
    lengths = [len(node.token_ids) for node in trajectory.nodes if node.kind == "sampled"]
    if lengths != [DRAWN] * TURNS or trajectory.untrainable_turns or trajectory.prefix_breaks:
        raise RivalError(
            f"a rollout through {name} drew turns of {lengths} tokens, {trajectory.untrainable_turns} without logprobs "
            f"and with {trajectory.prefix_breaks} broken prefixes; expected {TURNS} turns of {DRAWN}"
        )


async def open_sides(stack: AsyncExitStack, folder: Path, renderer: Endless, dtypes: Mapping[str, str]) -> list[Side]:
    """Everyone loaded, with the same adapter; vLLM is left out, with a line that says why, where it cannot be had."""
    scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    make_adapter(folder, scratch / "adapter")
    sides = []
    for name, dtype in dtypes.items():
        decoder = place(folder, dtype=dtype)
        engine = await stack.enter_async_context(EmbeddedEngine(decoder))
        lora = read_adapter(scratch / "adapter", decoder.config)
        policy = PolicyVersion("bench", 1, lora.digest())
        await engine.publish(policy, lora)
        sides.append(Side(name, engine, _counter(engine), policy))
    try:
        for name, model in ((THEIRS, ADAPTER), ("vllm, merged", BASE)):
            adapter = scratch / "adapter" if model == ADAPTER else None
            server = stack.enter_context(VllmServer(folder, adapter=adapter, rank=RANK))
            client = CompletionServer(model, renderer, base_url=server.url, seeded=False, timeout_s=600.0, retries=0)
            stack.push_async_callback(client.aclose)
            sides.append(Side(name, client, server.prefilled, awake=server.awake))
    except RivalError as error:
        print(f"left out: {error}", file=sys.stderr)
    return sides


def _counter(engine: EmbeddedEngine) -> Callable[[], float]:
    return lambda: engine.metrics()["prefilled_tokens"]


async def measure(
    sides: Sequence[Side], renderer: Endless, *, groups: int, latency_s: float, repeats: int
) -> dict[str, list[Round]]:
    """Sides take turns; at the first latency a round of one group warms up and is not counted."""
    rounds: dict[str, list[Round]] = {side.name: [] for side in sides}
    for repeat in range(-1 if latency_s == LATENCIES_S[0] else 0, repeats):
        with turns.quiet_machine():
            for side in sides:
                size = groups if repeat >= 0 else 1
                done = await one_round(side, renderer, groups=size, latency_s=latency_s, repeat=repeat)
                what = f"round {repeat + 1}" if repeat >= 0 else "warm-up"
                print(f"{1000 * latency_s:g} ms, {what}, {side.name}: {done.seconds:.1f} s", file=sys.stderr)
                if repeat >= 0:
                    rounds[side.name].append(done)
    return rounds


def make_row(name: str, latency_s: float, rounds: Sequence[Round], ours: Sequence[Round]) -> dict[str, Any]:
    """One line of the table; token counts are of the last repeat."""
    rates = [done.rollouts / done.seconds for done in rounds]
    last = rounds[-1]
    return {
        "latency_ms": round(1000 * latency_s),
        "side": name,
        "rollouts_per_s": statistics.median(rates),
        "low": min(rates),
        "high": max(rates),
        "rollouts": last.rollouts,
        "drawn": last.drawn,
        "prompts": last.prompts,
        "prefilled": last.prefilled,
        "distinct": last.distinct,
        "work": last.work / ours[-1].work,
        "sortie_bf16_is_x": turns.speedup(_seconds(ours), _seconds(rounds))["value"],
    }


def make_targets(rounds: Mapping[float, Mapping[str, Sequence[Round]]]) -> list[Mapping[str, Any]]:
    """Speed at both latencies, and prompt tokens computed over distinct ones.

    Raises: RivalError if the two sides did not do the same work.
    """
    out: list[Mapping[str, Any]] = []
    for latency_s in LATENCIES_S:
        name = f"rollouts/s at {1000 * latency_s:g} ms, against vLLM with the adapter"
        ours, theirs = rounds[latency_s][OURS], rounds[latency_s].get(THEIRS)
        if theirs is None:
            out.append(unmeasured(name, TARGET))
            continue
        for our, their in zip(ours, theirs, strict=True):
            if abs(our.work / their.work - 1) > SAME:
                raise RivalError(f"not the same work: {our.work} tokens against vLLM's {their.work}")
        out.append(turns.target(name, turns.speedup(_seconds(ours), _seconds(theirs)), TARGET))
    shares = [done.prefilled / done.distinct for sides in rounds.values() for done in sides[OURS]]
    out.append(turns.target("prefilled tokens over distinct ones", turns.spread(shares), 1.0, at_most=True))
    return out


def _seconds(rounds: Sequence[Round]) -> list[float]:
    return [done.seconds for done in rounds]


async def compare(
    groups: int, repeats: int, dtypes: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[Mapping[str, Any]]]:
    """Rows and targets."""
    folder = models.resolve(MODEL)
    renderer = Endless(renderer_for(folder))
    rounds: dict[float, dict[str, list[Round]]] = {}
    async with AsyncExitStack() as stack:
        with turns.quiet_machine():
            sides = await open_sides(stack, folder, renderer, dtypes)
        for latency_s in LATENCIES_S:
            rounds[latency_s] = await measure(sides, renderer, groups=groups, latency_s=latency_s, repeats=repeats)
    rows = [
        make_row(name, latency_s, done, of_latency[OURS])
        for latency_s, of_latency in rounds.items()
        for name, done in of_latency.items()
    ]
    return rows, make_targets(rounds)


def main() -> None:
    """4 groups and 3 repeats; quick: 2 groups and 1 repeat, without float32."""
    options = arguments(__doc__ or "")
    dtypes = {OURS: "bfloat16"} if options.quick else {OURS: "bfloat16", "sortie fp32": "float32"}
    rows, targets = asyncio.run(compare(*((2, 1) if options.quick else (4, 3)), dtypes))
    publish("agents", rows, targets, as_json=options.json)


if __name__ == "__main__":
    command(main)
