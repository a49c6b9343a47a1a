from __future__ import annotations

import torch
from hypothesis import given, settings, strategies as st

from sortie.inference.embedded.plan import DecodePlan


def rows_of(tree: list[tuple[int, int]], prefix: int) -> list[list[int]]:
    """Rows that share slots as a real batch does: a common run, then per pair a shared run and own slots."""
    rows, fresh = [], iter(range(1000, 100_000))
    common = [next(fresh) for _ in range(prefix)]
    for members, shared in tree:
        run = [next(fresh) for _ in range(shared)]
        rows += [[*common, *run, *(next(fresh) for _ in range(1 + i))] for i in range(members)]
    return rows


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 40)), min_size=1, max_size=4),
    st.integers(0, 40),
    st.integers(0, 3),
)
def test_every_row_reads_each_of_its_slots_once(tree: list[tuple[int, int]], prefix: int, grown: int) -> None:
    rows = rows_of(tree, prefix)
    plan = DecodePlan(rows, torch.device("cpu"))
    for step in range(grown):
        extra = [200_000 + step * 100 + i for i in range(len(rows))]
        plan.append([extra[i] for i in plan.order])
        for i, slot in zip(range(len(rows)), extra, strict=True):
            rows[i].append(slot)
    blank, tails = plan.blank_RS, plan.tails_RP
    for place, row in enumerate(plan.order):
        read = [s for span in plan.spans if span.first <= place < span.last for s in span.slots.tolist()]
        read += tails[place][~blank[place, plan.shared :]].tolist()
        assert sorted(read) == sorted(rows[row])
        assert int((~blank[place]).sum()) == len(rows[row])


def test_a_long_shared_prefix_is_one_span() -> None:
    plan = DecodePlan(rows_of([(4, 30), (4, 30)], 100), torch.device("cpu"))
    assert sorted((s.last - s.first, len(s.slots)) for s in plan.spans) == [(4, 30), (4, 30), (8, 100)]


def test_a_short_common_prefix_does_not_hide_long_ones_below_it() -> None:
    """Two environments whose prompts start with the same few tokens still share each its own preamble."""
    plan = DecodePlan(rows_of([(4, 80), (4, 90)], 5), torch.device("cpu"))
    assert sorted((s.last - s.first, len(s.slots)) for s in plan.spans) == [(4, 85), (4, 95)]
