"""Rollouts per group for the least variance of the gradient."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from sortie.scheduling.rivals.allocate import allocate


def cost(signal: list[float], sizes: list[int]) -> float:
    return sum(a * (n - 1) / n**2 for a, n in zip(signal, sizes, strict=True))


@settings(max_examples=40, deadline=None)
@given(signal=st.lists(st.floats(0, 0.25), min_size=1, max_size=4), group_size=st.integers(3, 6))
def test_no_other_split_of_the_budget_is_better(signal: list[float], group_size: int) -> None:
    sizes = allocate(signal, group_size, 3, 8)
    budget = group_size * len(signal)
    assert sum(sizes) == budget
    others = [list(split) for split in product(range(3, 9), repeat=len(signal)) if sum(split) == budget]
    assert cost(signal, sizes) <= min(cost(signal, split) for split in others) + 1e-12


def test_a_group_that_cannot_vary_gets_the_least() -> None:
    """Signals 1/4 and 0, 16 rollouts: 13 and 3; at most 12: 12 and 4."""
    assert allocate([0.25, 0.0], 8, 3, 32) == [13, 3]
    assert allocate([0.25, 0.0], 8, 3, 12) == [12, 4]


@pytest.mark.parametrize("group_size", [1, 2, 3])
def test_groups_too_small_to_share_are_equal(group_size: int) -> None:
    assert allocate([0.25, 0.0, 0.1], group_size, 3, 32) == [group_size] * 3
