"""Keys and values of past tokens: blocks from one capped pool, found again by (version, tokens).

A radix tree per policy version maps token prefixes to the slots that hold their KV, so the turns of one rollout and
the siblings of one group compute each distinct prefix once. Slots are allocated in whole blocks and counted; a run of
tokens that no request reads may be evicted, least recently used first. No prefix is ever served to another version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Run:
    """A tree node: tokens and the slots of their KV. `pins` counts the requests reading through it."""

    tokens: list[int]
    slots: list[int]
    parent: Run | None
    children: dict[int, Run] = field(default_factory=dict)
    pins: int = 0
    used_at: int = 0


class BlockPool:
    """A capped number of blocks of `block_size` slots; a block is free when none of its slots is held."""

    def __init__(self, blocks: int, block_size: int) -> None:
        self.block_size = block_size
        self.free = list(range(blocks - 1, -1, -1))
        self.held = [0] * blocks
        """Slots in use, per block."""

    @property
    def blocks(self) -> int:
        return len(self.held)

    def take(self) -> list[int]:
        """The slots of a fresh block, all counted as held.

        Raises: IndexError if no block is free; callers reserve first.
        """
        block = self.free.pop()
        self.held[block] = self.block_size
        start = block * self.block_size
        return list(range(start, start + self.block_size))

    def give_back(self, slots: Sequence[int]) -> None:
        """Release slots, each held once before."""
        for slot in slots:
            block = slot // self.block_size
            self.held[block] -= 1
            if self.held[block] == 0:
                self.free.append(block)


class PrefixCache:
    """The trees over one pool."""

    def __init__(self, pool: BlockPool) -> None:
        self.pool = pool
        self.roots: dict[str, Run] = {}
        self.clock = 0
        self.evicted_tokens = 0

    def match(self, version: str, tokens: Sequence[int]) -> tuple[list[Run], int]:
        """Runs that spell the longest cached prefix of `tokens`, and its length. The last run is split to fit."""
        self.clock += 1
        at = self.roots.setdefault(version, Run([], [], None))
        path, length = [at], 0
        while length < len(tokens) and (child := at.children.get(tokens[length])) is not None:
            same = _common(child.tokens, tokens, length)
            at = child if same == len(child.tokens) else self._split(child, same)
            at.used_at = self.clock
            path.append(at)
            length += same
            if at is not child:
                break
        return path, length

    def insert(self, version: str, tokens: Sequence[int], slots: Sequence[int]) -> list[Run]:
        """File `slots` (one per token) under `tokens`; returns the path.

        Slots of the matched prefix are assumed to be the tree's own where equal; where the tree already holds another
        copy, ours is given back.
        """
        path, length = self.match(version, tokens)
        held = [slot for run in path for slot in run.slots]
        self.pool.give_back([ours for ours, theirs in zip(slots, held, strict=False) if ours != theirs])
        if length < len(tokens):
            run = Run(list(tokens[length:]), list(slots[length:]), path[-1], used_at=self.clock)
            path[-1].children[tokens[length]] = run
            path.append(run)
        return path

    def evict(self, blocks: int) -> None:
        """Drop unread runs, least recently used first, until `blocks` blocks are free or nothing is left to drop."""
        while len(self.pool.free) < blocks:
            leaves = [run for run in self._runs() if not run.children and not run.pins]
            if not leaves:
                return
            self._drop(min(leaves, key=lambda run: run.used_at))

    def forget(self, version: str) -> None:
        """Drop everything of a version that no request is reading."""
        root = self.roots.get(version)
        if root is None:
            return
        for run in sorted(_below(root), key=_depth, reverse=True):
            if not run.children and not run.pins and run.parent is not None:
                self._drop(run)
        if not root.children:
            del self.roots[version]

    def _drop(self, run: Run) -> None:
        assert run.parent is not None
        del run.parent.children[run.tokens[0]]
        self.pool.give_back(run.slots)
        self.evicted_tokens += len(run.slots)

    def _split(self, run: Run, at: int) -> Run:
        """Cut a run in two; `run` stays the lower part, so that the pins held on it stay right. Returns the upper."""
        assert run.parent is not None
        upper = Run(run.tokens[:at], run.slots[:at], run.parent, pins=run.pins, used_at=run.used_at)
        run.parent.children[upper.tokens[0]] = upper
        run.tokens, run.slots, run.parent = run.tokens[at:], run.slots[at:], upper
        upper.children[run.tokens[0]] = run
        return upper

    def _runs(self) -> Iterator[Run]:
        for root in self.roots.values():
            yield from _below(root)


def pin(run: Run) -> None:
    """Keep a run and everything above it from eviction."""
    at: Run | None = run
    while at is not None:
        at.pins += 1
        at = at.parent


def unpin(run: Run) -> None:
    """Undo one `pin` of the same run."""
    at: Run | None = run
    while at is not None:
        at.pins -= 1
        at = at.parent


def _common(run: Sequence[int], tokens: Sequence[int], offset: int) -> int:
    limit = min(len(run), len(tokens) - offset)
    if list(run[:limit]) == list(tokens[offset : offset + limit]):
        return limit
    return next(i for i in range(limit) if run[i] != tokens[offset + i])


def _below(root: Run) -> Iterator[Run]:
    stack = list(root.children.values())
    while stack:
        run = stack.pop()
        yield run
        stack.extend(run.children.values())


def _depth(run: Run) -> int:
    depth = 0
    while run.parent is not None:
        run, depth = run.parent, depth + 1
    return depth
