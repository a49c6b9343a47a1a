"""Attention in few calls equals attention row by row, values and gradients, in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from sortie.models.attention import grouped_attention
from sortie.training import trie
from sortie.training.attention import _plain, attend
from sortie.training.trie import Pack, TrieAttend, packs_of

CPU = torch.device("cpu")


def row_by_row(pack: Pack, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each row by itself, with a causal mask over all of it."""
    out = torch.zeros_like(q)
    for row in pack.rows:
        at = torch.from_numpy(pack.places(row))
        mask = torch.ones(len(at), len(at), dtype=torch.bool).tril()
        out = out.index_put((at,), grouped_attention(q[at], k[at], v[at], mask))
    return out


def inputs(pack: Pack, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Four query heads, two key heads of size 8."""
    g, tokens = torch.Generator().manual_seed(0), len(pack.tokens_T)
    shapes = ((tokens, n, 8) for n in (4, 2, 2))
    return [torch.randn(s, dtype=torch.float64, generator=g).to(dtype).requires_grad_() for s in shapes]


def gradients(out: Tensor, of: list[Tensor]) -> tuple[Tensor, ...]:
    weights = torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return torch.autograd.grad((out * weights).sum(), of)


ROWS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=30).map(lambda r: np.array(r, np.int64)), min_size=1)


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, piece=st.sampled_from([1, 3, 256]))
def test_values_and_gradients_are_those_of_each_row_by_itself(rows: list, piece: int) -> None:
    """Pain A8, A22: whatever rows share, however long their segments, and however those are cut and padded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trie, "PIECE", piece)
        patch.setattr(trie, "MIN_SHARED", 2)
        for pack in packs_of(rows, 10_000):
            qkv = inputs(pack)
            found, expected = TrieAttend(pack, CPU)(0, *qkv), row_by_row(pack, *qkv)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
            for f, e in zip(gradients(found, qkv), gradients(expected, qkv), strict=True):
                torch.testing.assert_close(f, e, rtol=0, atol=1e-11)


def test_siblings_take_one_call_for_their_own_tokens_and_one_for_what_they_share() -> None:
    rows = [np.array([1] * 40 + [i] * 20, np.int64) for i in range(2, 10)]
    (pack,) = packs_of(rows, 10_000)
    plan = TrieAttend(pack, CPU).plan
    assert [(len(own.places), own.length) for own in plan.own] == [(40, 40), (160, 20)]
    assert [(part.keys, part.queries) for part in plan.above] == [(slice(0, 40), slice(40, 200))]


def test_bfloat16_gradients_stay_close_to_double_precision() -> None:
    """Rounding of the log-sum-exp is made up for: errors stay of the order of bfloat16's own (2^-8)."""
    rows = [np.array([1] * 100 + [i] * 60, np.int64) for i in range(2, 8)]
    (pack,) = packs_of(rows, 10_000)
    half, exact = inputs(pack, torch.bfloat16), inputs(pack)
    found, expected = TrieAttend(pack, CPU)(0, *half), row_by_row(pack, *exact)
    for f, e in zip(gradients(found, half), gradients(expected, exact), strict=True):
        assert (f.double() - e).norm() / e.norm() < 0.02


@pytest.mark.parametrize("causal", [True, False])
def test_other_devices_compute_what_the_cpu_kernel_computes(causal: bool) -> None:
    q = torch.randn(3, 11, 2, 8, dtype=torch.float64)
    k, v = torch.randn(2, 3, 11, 8, dtype=torch.float64)
    fused = attend(q, k, v, causal=causal)
    k, v = (x.unsqueeze(1) for x in (k, v))
    for f, plain in zip(fused, _plain(q.transpose(1, 2), k, v, causal), strict=True):
        torch.testing.assert_close(f, plain.transpose(1, 2), rtol=0, atol=1e-12)


def test_any_layout_of_the_inputs_will_do() -> None:
    """Without gradients the decoder hands over views whose last dimension is not the contiguous one."""
    (pack,) = packs_of([np.arange(30)], 10_000)
    qkv = [x.detach() for x in inputs(pack)]
    turned = [x.flatten(1).T.contiguous().T.view(x.shape) for x in qkv]
    torch.testing.assert_close(TrieAttend(pack, CPU)(0, *turned), TrieAttend(pack, CPU)(0, *qkv), rtol=0, atol=1e-12)
