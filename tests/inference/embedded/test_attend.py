from __future__ import annotations

import torch
from hypothesis import given, settings, strategies as st

from sortie.inference.embedded.attend import PADDING, Prefill, StepAttend, batches
from sortie.inference.embedded.plan import DecodePlan
from sortie.inference.embedded.store import KVStore, RowCache
from sortie.models.attention import attention_with_mass, grouped_attention
from tiny import tiny_decoder

DECODER = tiny_decoder()
CPU = torch.device("cpu")
SLOTS = 400


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_step_attends_as_each_sequence_would_alone(data: st.DataObject) -> None:
    """Rows with and without a shared prefix, held or gathered, and prompts of any length, written in the same step."""
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    store, fresh = KVStore(DECODER, SLOTS), iter(torch.randperm(SLOTS - 1).add(1).tolist())
    store.kv[:] = torch.randn_like(store.kv)
    prefix = [next(fresh) for _ in range(data.draw(st.sampled_from([0, 3, 30])))]
    tails = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    rows = [[*(prefix if data.draw(st.booleans()) else []), *(next(fresh) for _ in range(n))] for n in tails]
    prompts = [
        (n, [*prefix, *(next(fresh) for _ in range(n))]) for n in data.draw(st.lists(st.integers(1, 20), max_size=3))
    ]
    cache = RowCache(store, DecodePlan(rows, CPU), limit=data.draw(st.sampled_from([0, 2**30])))
    prefills = []
    if prompts:
        prefills = [Prefill.of(len(rows), [n for n, _ in prompts], [s for _, s in prompts], torch.float32, CPU)]
    sequences = [(1, row) for row in rows] + prompts
    written = torch.tensor([slot for new, slots in sequences for slot in slots[-new:]])
    c, total = DECODER.config, len(written)
    q = torch.randn(total, c.heads, c.head_dim)
    k, v = torch.randn(2, total, c.kv_heads, c.head_dim)
    found = StepAttend(store, written, cache, prefills)(1, q, k, v)
    at = 0
    for new, slots in sequences:
        keys, values = (x.transpose(0, 1) for x in store.read(1, torch.tensor(slots)).unbind(0))
        mask = torch.ones(new, len(slots), dtype=torch.bool).tril(len(slots) - new)
        expected = grouped_attention(q[at : at + new], keys, values, mask)
        torch.testing.assert_close(found[at : at + new], expected, rtol=1e-4, atol=1e-5)
        at += new


def test_the_mass_joins_attention_over_two_sets_of_keys() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 4, 10, 16)
    first, first_mass = attention_with_mass(q, k[:, :, :4], v[:, :, :4], None)
    second, second_mass = attention_with_mass(q, k[:, :, 4:], v[:, :, 4:], None)
    joined = torch.lerp(first, second, (second_mass - first_mass).sigmoid().unsqueeze(-1))
    torch.testing.assert_close(joined, attention_with_mass(q, k, v, None)[0])


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(0, 300)), max_size=20))
def test_prompts_computed_at_once_are_of_like_length(sizes: list[tuple[int, int]]) -> None:
    """Padding never makes more than `PADDING` times the work."""
    sizes = [(new, new + cached) for new, cached in sizes]
    counts, at = batches(sizes), 0
    assert sum(counts) == len(sizes)
    for count in counts:
        part = sizes[at : at + count]
        work = count * max(new for new, _ in part) * max(total for _, total in part)
        assert work <= PADDING * sum(new * total for new, total in part)
        at += count
