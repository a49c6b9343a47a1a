"""Who is in the running batch: requests wait, join when their KV fits, and leave one by one.

A request is admitted only with enough free blocks reserved for all it may still draw, so a running one never starves.
"""

from __future__ import annotations

from sortie.core.completion import CompletionEnd
from sortie.inference.embedded.config import EngineConfig
from sortie.inference.embedded.kv import BlockPool, PrefixCache, pin, unpin
from sortie.inference.embedded.sequence import Job, Sequence


class Batch:
    """Waiting and running sequences over one block pool."""

    def __init__(self, config: EngineConfig, pool: BlockPool) -> None:
        self.config = config
        self.pool = pool
        self.cache = PrefixCache(pool)
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.reserved = 0
        """Blocks promised to running sequences and not taken yet."""
        self.prefilled_tokens = 0
        self.cached_tokens = 0

    def submit(self, job: Job) -> None:
        """Queue the job's samples: higher priority first, then in order of arrival."""
        self.waiting += [Sequence(job, i, list(job.request.prompt)) for i in range(job.request.n)]
        self.waiting.sort(key=lambda s: (-s.job.request.priority, s.job.submitted_at, s.index))

    def blocks_for(self, prompt: int, max_tokens: int) -> int:
        """Most blocks a sequence can need, with nothing of it cached."""
        return -(-(prompt + max_tokens) // self.pool.block_size)

    def admit(self) -> list[Sequence]:
        """Move waiting sequences into the batch while rows, prefill budget and KV last; returns those that joined."""
        joined: list[Sequence] = []
        budget = self.config.max_prefill_tokens
        while self.waiting and len(self.running) < self.config.max_batch:
            sequence = self.waiting[0]
            if not self._place(sequence, budget if joined else None):
                break
            budget -= sequence.pending
            self.waiting.pop(0)
            self.running.append(sequence)
            joined.append(sequence)
        return joined

    def _place(self, s: Sequence, budget: int | None) -> bool:
        """Find the cached prefix, reserve the rest, plan slots for the prompt. False if it must wait."""
        path, cached = self.cache.match(s.job.version, s.tokens[:-1])
        if budget is not None and len(s.tokens) - cached > budget:
            return False
        pin(path[-1])
        need = self.blocks_for(len(s.tokens) - cached, s.job.request.params.max_tokens)
        if len(self.pool.free) - self.reserved < need:
            self.cache.evict(need + self.reserved)
        if len(self.pool.free) - self.reserved < need:
            unpin(path[-1])
            return False
        self.reserved += need
        s.reserved_blocks = need
        s.slots = [slot for run in path for slot in run.slots]
        s.computed = cached
        self.extend_slots(s)
        # The prompt but for its last token is filed at once: siblings that join in this very step read it, since every
        # layer writes all keys before any query looks. The last token stays ours: each sibling needs its own logits.
        filed = self.cache.insert(s.job.version, s.tokens[:-1], s.slots[:-1])
        unpin(path[-1])
        pin(filed[-1])
        s.pinned = filed[-1]
        self.prefilled_tokens += s.pending
        self.cached_tokens += cached
        return True

    def extend_slots(self, s: Sequence) -> None:
        """Give every token of the sequence a slot."""
        while len(s.slots) < len(s.tokens):
            if not s.spare:
                s.spare = self.pool.take()
                s.reserved_blocks -= 1
                self.reserved -= 1
            s.slots.append(s.spare.pop(0))

    def finish(self, s: Sequence, end: CompletionEnd) -> None:
        """Take a sequence out, keep its KV findable, and deliver its job when it was the last sample."""
        self._leave(s)
        s.job.done[s.index] = s.completion(end)
        if len(s.job.done) == s.job.request.n:
            s.job.finish([s.job.done[i] for i in range(s.job.request.n)])

    def fail(self, job: Job, error: Exception) -> None:
        """Take all of a job's sequences out and deliver the error."""
        self.waiting = [s for s in self.waiting if s.job is not job]
        for s in [s for s in self.running if s.job is job]:
            self._leave(s)
        job.finish(error)

    def _leave(self, s: Sequence) -> None:
        self.running.remove(s)
        assert s.pinned is not None
        # The token drawn last was never fed, so it has no KV and no slot.
        self.cache.insert(s.job.version, s.tokens[: s.computed], s.slots[: s.computed])
        self.pool.give_back(s.slots[s.computed :])
        self.pool.give_back(s.spare)
        unpin(s.pinned)
        self.reserved -= s.reserved_blocks
        s.spare, s.reserved_blocks = [], 0
