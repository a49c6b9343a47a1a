"""The embedded engine: continuous batching on this machine, on a thread of its own.

Requests join and leave a running batch between two of its steps; a step computes the pending tokens of every running
sequence and draws one token for each. The event loop never waits on torch. If the thread dies, every request fails with
its cause, and so does every later one.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Self

import torch

from sortie.core.completion import Completion
from sortie.core.errors import BudgetError, ModelError
from sortie.core.policy import PolicyVersion
from sortie.inference.client import SampleRequest
from sortie.inference.embedded.adapters import Adapters
from sortie.inference.embedded.batch import Batch
from sortie.inference.embedded.config import EngineConfig
from sortie.inference.embedded.kv import BlockPool
from sortie.inference.embedded.runner import ModelRunner
from sortie.inference.embedded.sampler import sample
from sortie.inference.embedded.sequence import Job, Sequence
from sortie.models.decoder import Decoder
from sortie.models.lora import Lora
from sortie.models.threads import end_pool, passing_pool

PUBLISH_TIMEOUT_S = 600.0
"""A publish waits for the step in progress; a step that takes longer than this is a hang."""


class EmbeddedEngine:
    """A SamplingClient over one decoder and any number of adapter versions.

    Use as `async with EmbeddedEngine(decoder) as engine`, or call `close()`.
    """

    def __init__(
        self,
        decoder: Decoder,
        config: EngineConfig | None = None,
        *,
        decode: Callable[[list[int]], str] | None = None,
    ) -> None:
        self.config = config or EngineConfig()
        self.decoder = decoder
        self.decode = decode
        """Spells tokens, needed for stop strings only."""
        bytes_per_slot = decoder.config.kv_bytes_per_token * decoder.dtype.itemsize // 4
        blocks = self.config.kv_memory_mb * 2**20 // (bytes_per_slot * self.config.block_size)
        self.batch = Batch(self.config, BlockPool(blocks, self.config.block_size))
        self.runner = ModelRunner(decoder, blocks * self.config.block_size, self.config.kv_memory_mb * 2**20)
        self.adapters = Adapters(decoder.dtype, self.config.kept_versions)
        self.decoded_tokens = 0
        self.steps = 0
        self._inbox: deque[Callable[[], None]] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._died: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="sortie-engine", daemon=True)
        self._thread.start()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Stop after the step in progress; requests still in the engine fail."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(timeout=60)

    async def sample(self, request: SampleRequest) -> list[Completion]:
        """See `SamplingClient.sample`."""
        self._check(request)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Completion]] = loop.create_future()

        def settle(outcome: list[Completion] | Exception) -> None:
            if future.done():
                return
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        def deliver(outcome: list[Completion] | Exception) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, outcome)

        job = Job(request, deliver)
        self._post(lambda: self._submit(job))
        try:
            return await future
        except asyncio.CancelledError:
            self._post(lambda: self.batch.fail(job, ModelError("aborted")))
            raise

    async def publish(self, version: PolicyVersion, lora: Lora) -> None:
        """Take up an immutable snapshot between two steps; requests may be pinned to it from now on."""
        loop, taken_up = asyncio.get_running_loop(), asyncio.Event()

        def take_up() -> None:
            self.adapters.add(version, lora)
            self._retire()
            loop.call_soon_threadsafe(taken_up.set)

        self._post(take_up)
        async with asyncio.timeout(PUBLISH_TIMEOUT_S):
            await taken_up.wait()

    def metrics(self) -> dict[str, float]:
        """Counters since the start."""
        return {
            "steps": self.steps,
            "decoded_tokens": self.decoded_tokens,
            "prefilled_tokens": self.batch.prefilled_tokens,
            "cached_tokens": self.batch.cached_tokens,
            "evicted_tokens": self.batch.cache.evicted_tokens,
            "kv_blocks_used": self.batch.pool.blocks - len(self.batch.pool.free),
            "kv_blocks": self.batch.pool.blocks,
        }

    def _check(self, request: SampleRequest) -> None:
        p, prompt = request.params, len(request.prompt)
        if not prompt:
            raise BudgetError("an empty prompt cannot be continued")
        window = self.decoder.config.max_positions
        if prompt + p.max_tokens > window:
            raise BudgetError(f"prompt of {prompt} tokens + max_tokens {p.max_tokens} exceeds the window of {window}")
        if self.batch.blocks_for(prompt, p.max_tokens) > self.batch.pool.blocks:
            raise BudgetError(
                f"prompt of {prompt} tokens + max_tokens {p.max_tokens} exceeds the KV memory: "
                "raise engine.kv_memory_mb"
            )
        if p.stop and self.decode is None:
            raise BudgetError("stop strings need an engine that was given `decode`")

    def _post(self, action: Callable[[], None]) -> None:
        """Have the engine thread do something between two steps."""
        with self._wake:
            if self._died is not None:
                raise ModelError(f"the engine died: {self._died!r}") from self._died
            if self._closing:
                raise ModelError("the engine is closed")
            self._inbox.append(action)
            self._wake.notify()

    def _submit(self, job: Job) -> None:
        if job.request.policy is not None and job.version not in self.adapters:
            job.finish(ModelError(f"policy {job.request.policy} is not loaded; loaded: {self.adapters.names}"))
            return
        self.batch.submit(job)

    def _run(self) -> None:
        try:
            with passing_pool(), torch.inference_mode():
                self.decoder.pack()
                while self._take_inbox():
                    self._step()
            cause: BaseException = ModelError("the engine is closed")
        except BaseException as error:  # noqa: BLE001 - whatever killed the thread must reach every waiting request
            cause = self._died = error
        with self._wake:
            self._closing = True
            for action in self._inbox:
                action()
            self._inbox.clear()
        failure = cause if isinstance(cause, ModelError) else ModelError(f"the engine died: {cause!r}")
        for job in {s.job for s in (*self.batch.waiting, *self.batch.running)}:
            job.finish(failure)

    def _take_inbox(self) -> bool:
        """Do what was posted, waiting for something if the batch is empty. False: close."""
        with self._wake:
            while not (self._inbox or self.batch.running or self.batch.waiting or self._closing):
                end_pool()  # while the engine has nothing to do, others compute
                self._wake.wait()
            actions = list(self._inbox)
            self._inbox.clear()
        for action in actions:
            action()
        return not self._closing

    def _step(self) -> None:
        for job in {s.job for s in (*self.batch.waiting, *self.batch.running) if s.job.expired}:
            self.batch.fail(job, ModelError(f"no completion within {job.request.deadline_s:g} s"))
        self.batch.admit()
        if not self.batch.running:
            return
        for s in self.batch.running:
            self.batch.extend_slots(s)
        order = self.runner.arrange(self.batch.running)
        delta = self.adapters.delta([(s.job.version, s.pending) for s in order])
        logits_RV = self.runner.run(order, delta)
        twins = [s for s in self.batch.running if s.pending == 0]
        if twins:
            place = {s: i for i, s in enumerate(order)}
            logits_RV = logits_RV[[*range(len(order)), *(place[s.twin] for s in twins if s.twin)]]
            order = order + twins
        self._advance(order, *sample(logits_RV, [s.draw() for s in order]))
        self.steps += 1

    def _advance(self, order: list[Sequence], tokens: list[int], logprobs: list[float]) -> None:
        """Append what was drawn, and let go of what has ended."""
        for s, token, logprob in zip(order, tokens, logprobs, strict=True):
            s.computed = len(s.tokens)
            s.tokens.append(token)
            s.logprobs.append(logprob)
            end = s.end(self.decode)
            if end is not None:
                self.batch.finish(s, end)
        self.decoded_tokens += len(order)
        self._retire()

    def _retire(self) -> None:
        busy = {s.job.version for s in (*self.batch.waiting, *self.batch.running)}
        for version in self.adapters.retire(busy):
            self.batch.cache.forget(version)
