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
        first: dict[tuple[str, tuple[int, ...]], Sequence] = {}
        budget = self.config.max_prefill_tokens
        while self.waiting and len(self.running) < self.config.max_batch:
            sequence = self.waiting[0]
            prompt = sequence.job.version, tuple(sequence.tokens)
            if prompt in first:
                placed = self._place_beside(first[prompt], sequence)
            else:
                placed = self._place(sequence, budget if joined else None)
            if not placed:
                break
            first.setdefault(prompt, sequence)
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
        if not self._reserve(s, len(s.tokens) - cached):
            unpin(path[-1])
            return False
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

    def _place_beside(self, first: Sequence, s: Sequence) -> bool:
        """Plan `s` next to one that joined in this step with the same prompt: nothing of it is computed twice."""
        assert first.pinned is not None
        if not self._reserve(s, 0):
            return False
        # The prompt's last token becomes the tree's too. Where the tree holds a copy from before, that one is taken.
        filed = self.cache.insert(s.job.version, s.tokens, first.slots)
        first.slots = [slot for run in filed for slot in run.slots]
        pin(filed[-1])
        unpin(first.pinned)
        pin(filed[-1])
        first.pinned = s.pinned = filed[-1]
        s.twin, s.slots, s.computed = first, list(first.slots), len(s.tokens)
        self.cached_tokens += len(s.tokens)
        return True

    def _reserve(self, s: Sequence, prompt: int) -> bool:
        """Promise the blocks that `s` may need for so many prompt tokens and all it may draw. False: not enough."""
        need = self.blocks_for(prompt, s.job.request.params.max_tokens)
        if len(self.pool.free) - self.reserved < need:
            self.cache.evict(need + self.reserved)
        if len(self.pool.free) - self.reserved < need:
            return False
        self.reserved += need
        s.reserved_blocks = need
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
