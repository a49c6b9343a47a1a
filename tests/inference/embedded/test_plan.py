from __future__ import annotations

import torch
from hypothesis import given, settings, strategies as st

from sortie.inference.embedded.plan import ROOM, DecodePlan, shared_prefixes

CPU = torch.device("cpu")


def rows_of(tree: list[tuple[int, int]], prefix: int) -> list[list[int]]:
    """Rows that share slots as a real batch does: a common run, then per pair a shared run and own slots."""
    rows, fresh = [], iter(range(1000, 100_000))
    common = [next(fresh) for _ in range(prefix)]
    for members, shared in tree:
        run = [next(fresh) for _ in range(shared)]
        rows += [[*common, *run, *(next(fresh) for _ in range(1 + i))] for i in range(members)]
    return rows


def groups_of(rows: list[list[int]]) -> list[tuple[int, int]]:
    """(rows, length) of each group."""
    return sorted((len(members), length) for members, length in shared_prefixes(rows))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 40)), min_size=1, max_size=4),
    st.integers(0, 40),
    st.integers(0, 3),
)
def test_every_row_reads_each_of_its_slots_once(tree: list[tuple[int, int]], prefix: int, grown: int) -> None:
    rows = rows_of(tree, prefix)
    plan = DecodePlan(rows, CPU)
    for step in range(grown):
        extra = [200_000 + step * 100 + i for i in range(len(rows))]
        plan.append(extra)
        for row, slot in zip(rows, extra, strict=True):
            row.append(slot)
    blank = plan.blank_RP()
    for i, row in enumerate(rows):
        read = plan.tails_RP[i, : blank.shape[1]][~blank[i]].tolist()
        if plan.shared is not None and not plan.shared.alone[i]:
            group, member = divmod(int(plan.shared.place[i]), plan.shared.rows.shape[1])
            assert plan.shared.rows[group, member] == i
            read = plan.shared.slots[group][~plan.shared.blank[group]].tolist() + read
        assert read == row


def test_rows_that_begin_alike_are_one_group_up_to_where_they_differ() -> None:
    assert groups_of(rows_of([(4, 30), (3, 0)], 100)) == [(7, 100)]


def test_the_groups_chosen_are_those_that_save_most_reads() -> None:
    """Two times four rows share 30 tokens among all and 200 more each: 2 x 3 x 230 reads saved against 7 x 30."""
    assert groups_of(rows_of([(4, 200), (4, 200)], 30)) == [(4, 230), (4, 230)]


def test_a_short_common_prefix_does_not_hide_long_ones_below_it() -> None:
    """Two environments whose prompts start with the same few tokens still share each its own preamble."""
    assert groups_of(rows_of([(4, 80), (4, 90), (1, 5)], 5)) == [(4, 85), (4, 95)]


def test_a_plan_is_full_when_a_tail_has_no_room_left() -> None:
    plan = DecodePlan([[7, 8, 9]], CPU)
    for step in range(ROOM):
        assert not plan.full
        plan.append([10 + step])
    assert plan.full
    assert plan.tails_RP.tolist() == [[7, 8, 9, *range(10, 10 + ROOM)]]
