"""Tokens drawn per second: Sortie's embedded engine against vLLM's CPU build and transformers' `generate`.

Equal for all: SmolLM2-135M-Instruct, the machine's cores, prompts of 16 random tokens that nobody has seen before (so
no prefix cache helps), temperature 1 over the whole vocabulary, a logprob for every drawn token, no early end, the
same number of tokens in every row, bfloat16 (Sortie also in float32), and with `adapter on` the same adapter: rank
16, all seven projections, B not zero. `decode_per_s` leaves the prompts out: rows x (tokens - 1) over the seconds
that a call for `tokens` takes longer than a call for one token. `whole_per_s` is rows x tokens over the whole call.

Not equal: vLLM is asked over HTTP, all rows in one request, without a seed; Sortie's draws are always keyed. `vllm,
lora idle` is a server started with --enable-lora and asked for the base model. A user may instead merge the adapter
into vLLM's weights after every step: that decodes at vLLM's speed without adapter, so hold Sortie's `adapter on`
against `vllm` of `adapter off` for it. vLLM's servers are stopped (SIGSTOP) while others work.

`floor` is the share of what memory allows: bytes of weights, adapter and KV of one step over the measured read
bandwidth, divided by the step's time.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.floor import adapter_bytes, kv_bytes, read_bandwidth, weight_bytes
from benchmarks.report import arguments, command, publish, unmeasured
from benchmarks.rivals import turns, vllm_server
from benchmarks.rivals.adapter import RANK, make_adapter
from benchmarks.rivals.venv import TRANSFORMERS, RivalError, venv
from benchmarks.rivals.vllm_server import VllmServer
from benchmarks.rivals.worker import Worker
from sortie import models
from sortie.models.config import DecoderConfig

MODEL = "smollm2-135m"
PROMPT = 16
"""Tokens of each prompt."""
WORDS = range(1000, 20000)
"""Ids that prompts are drawn from: ordinary text, no control tokens."""
Ask = Callable[[Sequence[Sequence[int]], int], float]
"""(prompts, tokens) -> seconds, all rows drawn to exactly that length."""


@dataclass(frozen=True, slots=True)
class Side:
    """One contestant under one condition."""

    name: str
    adapter: str
    """`on`, or `off` for the base model."""
    dtype: str
    ask: Ask


@dataclass(slots=True)
class Times:
    """What one side took at one batch size, a number per repeat."""

    whole: list[float] = field(default_factory=list)
    """Seconds of the call for all tokens."""
    first: list[float] = field(default_factory=list)
    """Seconds of the call for a single token."""

    @property
    def decode(self) -> list[float]:
        """Seconds that each long call took longer than the median short one: a hiccup of one short call spoils none."""
        return [whole - statistics.median(self.first) for whole in self.whole]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run measures."""

    tokens: Mapping[int, int]
    """Rows -> tokens drawn in each."""
    repeats: int


FULL = Plan({1: 64, 8: 64, 32: 48, 64: 32}, repeats=3)
QUICK = Plan({8: 24, 32: 24}, repeats=3)


def prompts(rows: int, key: str) -> list[list[int]]:
    """Random prompts that depend on the key alone: every side gets the same ones."""
    rng = random.Random(key)
    return [[rng.choice(WORDS) for _ in range(PROMPT)] for _ in range(rows)]


def measure(sides: Sequence[Side], rows: int, tokens: int, repeats: int) -> dict[tuple[str, str], Times]:
    """Sides take turns; a first round warms up and is not counted."""
    times = {(side.name, side.adapter): Times() for side in sides}
    for repeat in range(-1, repeats):
        with turns.quiet_machine():
            for side in sides:
                length = tokens if repeat >= 0 else 2
                first = side.ask(prompts(rows, f"first/{rows}/{repeat}"), 1)
                whole = side.ask(prompts(rows, f"whole/{rows}/{repeat}"), length)
                what = f"round {repeat + 1}" if repeat >= 0 else "warm-up"
                print(f"{rows} rows, {what}, {side.name}, adapter {side.adapter}: {whole:.1f} s", file=sys.stderr)
                if repeat >= 0:
                    times[side.name, side.adapter].whole.append(whole)
                    times[side.name, side.adapter].first.append(first)
    return times


def make_row(
    side: Side, times: Times, ours: Times, rows: int, tokens: int, config: DecoderConfig, bandwidth: float
) -> dict[str, Any]:
    """One line of the table; `ours` is Sortie in bfloat16 under the same condition.

    Where a call for one token took as long as one for all, nothing can be said of decoding, and nothing is.
    """
    named = {"adapter": side.adapter, "rows": rows, "side": side.name}
    whole_per_s = rows * tokens / statistics.median(times.whole)
    if min(times.decode) <= 0:
        unknown = dict.fromkeys(("decode_per_s", "low", "high"), "")
        return {**named, **unknown, "whole_per_s": whole_per_s, "floor": "", "sortie_bf16_is_x": ""}
    rates = [rows * (tokens - 1) / s for s in times.decode]
    step_bytes = weight_bytes(config, side.dtype) + kv_bytes(config, side.dtype, rows, PROMPT + tokens / 2)
    if side.adapter == "on":
        step_bytes += adapter_bytes(config, side.dtype, RANK)
    step_s = statistics.median(times.decode) / (tokens - 1)
    return {
        **named,
        "decode_per_s": statistics.median(rates),
        "low": min(rates),
        "high": max(rates),
        "whole_per_s": whole_per_s,
        "floor": step_bytes / bandwidth / step_s,
        "sortie_bf16_is_x": turns.speedup(ours.decode, times.decode)["value"],
    }


def make_targets(times: Mapping[int, Mapping[tuple[str, str], Times]]) -> list[Mapping[str, Any]]:
    """The issue's targets at every batch size, measured or not."""
    wanted = [(f"adapter on, {rows} rows, against vLLM", "on", rows, 1.0 if rows == 1 else 1.5) for rows in FULL.tokens]
    wanted += [(f"adapter off, {rows} rows, against vLLM", "off", rows, 1.15) for rows in FULL.tokens]
    out: list[Mapping[str, Any]] = []
    for name, adapter, rows, factor in wanted:
        ours = times.get(rows, {}).get(("sortie bf16", adapter))
        theirs = times.get(rows, {}).get(("vllm", adapter))
        if ours is None or theirs is None:
            out.append(unmeasured(name, factor))
        else:
            out.append(turns.target(name, turns.speedup(ours.decode, theirs.decode), factor))
    return out


@contextmanager
def contestants(folder: Path) -> Iterator[list[Side]]:
    """Everyone loaded; a rival that cannot be had is left out, with a line that says why."""
    with ExitStack() as stack:
        adapter = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "adapter"
        make_adapter(folder, adapter)
        sides: list[Side] = []
        for opened in (_sortie, _transformers, _vllm):
            try:
                with turns.quiet_machine():
                    sides += opened(stack, folder, adapter)
            except RivalError as error:
                print(f"left out: {error}", file=sys.stderr)
        # A base row and an adapter row of one side lie apart: nobody's caches are warm from its own last turn.
        yield sorted(sides, key=lambda side: side.adapter)


def _sortie(stack: ExitStack, folder: Path, adapter: Path) -> Iterator[Side]:
    for dtype, spelled in (("bf16", "bfloat16"), ("fp32", "float32")):
        settings = {"model": str(folder), "adapter": str(adapter), "dtype": spelled}
        worker = stack.enter_context(Worker(f"sortie {dtype}", "benchmarks.rivals.sortie_generate", settings))
        for state in ("off", "on"):
            yield Side(f"sortie {dtype}", state, dtype, _from_worker(worker, adapted=state == "on"))


def _transformers(stack: ExitStack, folder: Path, adapter: Path) -> Iterator[Side]:
    python = venv("transformers", TRANSFORMERS)
    for state in ("off", "on"):
        settings = {"model": str(folder), "adapter": str(adapter) if state == "on" else None}
        module = "benchmarks.rivals.transformers_generate"
        worker = stack.enter_context(Worker("transformers", module, settings, python=python))
        yield Side("transformers", state, "bf16", _from_worker(worker))


def _vllm(stack: ExitStack, folder: Path, adapter: Path) -> Iterator[Side]:
    plain = stack.enter_context(VllmServer(folder))
    yield Side("vllm", "off", "bf16", _from_server(plain, vllm_server.BASE))
    adapted = stack.enter_context(VllmServer(folder, adapter=adapter, rank=RANK))
    yield Side("vllm, lora idle", "off", "bf16", _from_server(adapted, vllm_server.BASE))
    yield Side("vllm", "on", "bf16", _from_server(adapted, vllm_server.ADAPTER))


def _from_worker(worker: Worker, **options: Any) -> Ask:
    def ask(prompts: Sequence[Sequence[int]], tokens: int) -> float:
        answer = worker.ask(prompts=prompts, tokens=tokens, **options)
        wanted = len(prompts) * tokens
        if answer["drawn"] != wanted or answer["logprobs"] != wanted:
            raise RivalError(
                f"{worker.name} drew {answer['drawn']} tokens with {answer['logprobs']} logprobs, not {wanted}"
            )
        return float(answer["seconds"])

    return ask


def _from_server(server: VllmServer, model: str) -> Ask:
    def ask(prompts: Sequence[Sequence[int]], tokens: int) -> float:
        with server.awake():
            started = time.perf_counter()
            server.complete(prompts, tokens, model=model)
            return time.perf_counter() - started

    return ask


def main() -> None:
    """Measure every batch size of the plan."""
    options = arguments(__doc__ or "")
    plan = QUICK if options.quick else FULL
    folder = models.resolve(MODEL)
    config = DecoderConfig.read(folder)
    table: list[dict[str, Any]] = []
    times: dict[int, dict[tuple[str, str], Times]] = {}
    with contestants(folder) as sides:
        with turns.quiet_machine():
            bandwidth = read_bandwidth()
        print(f"memory reads at {bandwidth / 1e9:.1f} GB/s", file=sys.stderr)
        for rows, tokens in plan.tokens.items():
            times[rows] = measure(sides, rows, tokens, plan.repeats)
            for side in sides:
                ours = times[rows]["sortie bf16", side.adapter]
                mine = times[rows][side.name, side.adapter]
                table.append(make_row(side, mine, ours, rows, tokens, config, bandwidth))
    publish("decode", table, make_targets(times), as_json=options.json)


if __name__ == "__main__":
    command(main)
