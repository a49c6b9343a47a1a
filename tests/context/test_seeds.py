from __future__ import annotations

from hypothesis import given, strategies as st

from sortie.context.seeds import RolloutKey, seed_for

keys = st.tuples(
    st.integers(0, 2**40),
    st.text(max_size=8),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 9),
    st.text(max_size=4),
)


def test_seeds_are_the_same_on_every_machine() -> None:
    assert seed_for(0, "arithmetic/ab12", 0, 0, 0) == seed_for(0, "arithmetic/ab12", 0, 0, 0, "main")
    assert seed_for(1, "arithmetic/ab12", 2, 3, 4) == 4127292247607469449


@given(keys, keys)
def test_different_keys_have_different_seeds_of_63_bits(
    a: tuple[int, str, int, int, int, str], b: tuple[int, str, int, int, int, str]
) -> None:
    assert 0 <= seed_for(*a) < 2**63
    assert (seed_for(*a) == seed_for(*b)) == (a == b)


def test_a_rollout_is_named_by_task_visit_and_member() -> None:
    key = RolloutKey(run_seed=1, task_key="shop/9", visit=2, member=3)
    assert key.id == "shop/9@2.3"
    assert key.seed(4, "main") == seed_for(1, "shop/9", 2, 3, 4)
