from __future__ import annotations

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sortie.inference.embedded.kv import BlockPool, PrefixCache, Run, pin, unpin

TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=20)
VERSIONS = st.sampled_from(["a", "b"])


class CacheMachine(RuleBasedStateMachine):
    """Requests come, find prefixes, file theirs and go, under eviction; a dict knows what is true."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(blocks=40, block_size=4)
        self.cache = PrefixCache(self.pool)
        self.content: dict[int, tuple[str, tuple[int, ...]]] = {}
        """Slot -> the prefix whose last token's KV it holds."""
        self.pinned: list[Run] = []

    @rule(version=VERSIONS, tokens=TOKENS)
    def serve(self, version: str, tokens: list[int]) -> None:
        path, _ = self.cache.match(version, tokens)
        slots = [slot for run in path for slot in run.slots]
        pin(path[-1])
        self.cache.evict(6)
        spare: list[int] = []
        if len(self.pool.free) >= 6:
            while len(slots) < len(tokens):
                spare = spare or self.pool.take()
                slot = spare.pop(0)
                slots.append(slot)
                self.content[slot] = (version, tuple(tokens[: len(slots)]))
            filed = self.cache.insert(version, tokens, slots)
            self.pool.give_back(spare)
            pin(filed[-1])
            self.pinned.append(filed[-1])
        unpin(path[-1])

    @precondition(lambda self: self.pinned)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        unpin(self.pinned.pop(data.draw(st.integers(0, len(self.pinned) - 1))))

    @rule(version=VERSIONS)
    def forget(self, version: str) -> None:
        self.cache.forget(version)

    @rule(version=VERSIONS, tokens=TOKENS)
    def a_match_holds_exactly_the_kv_of_its_tokens_and_version(self, version: str, tokens: list[int]) -> None:
        path, length = self.cache.match(version, tokens)
        slots = [slot for run in path for slot in run.slots]
        assert len(slots) == length
        assert [self.content[slot] for slot in slots] == [(version, tuple(tokens[: i + 1])) for i in range(length)]

    @invariant()
    def every_held_slot_is_in_the_tree_once(self) -> None:
        slots = [slot for run in self.cache._runs() for slot in run.slots]
        assert len(slots) == len(set(slots))
        assert sum(self.pool.held) == len(slots)
        assert len(self.pool.free) == sum(held == 0 for held in self.pool.held)

    @invariant()
    def pins_of_a_run_cover_those_below(self) -> None:
        for run in self.cache._runs():
            assert run.pins >= sum(child.pins for child in run.children.values())


CacheMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestCache = CacheMachine.TestCase
