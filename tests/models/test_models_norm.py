"""The compiled norm is torch's: same numbers, whatever the neighbours."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from sortie.models import norm
from sortie.models.norm import MOST_ROWS, add_norm

DTYPES = [torch.bfloat16, torch.float32]
EPS = 1e-5


def rows(count: int, width: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed)).mul(3).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("count", "width"), [(1, 8), (7, 33), (MOST_ROWS, 576)])
def test_sum_and_norm_are_torchs(dtype: torch.dtype, count: int, width: int) -> None:
    x, delta, weight = rows(count, width, dtype), rows(count, width, dtype, 1), rows(1, width, dtype, 2)[0]
    with torch.inference_mode():
        total, normed = add_norm(x, delta, weight, EPS)
        alone, normed_alone = add_norm(x, None, weight, EPS)
    assert torch.equal(total, x + delta)
    assert torch.equal(alone, x)
    # The sum of squares may be taken in another order, which moves a rounding now and then.
    tolerance = {torch.bfloat16: 8e-3, torch.float32: 1e-6}[dtype]
    for ours, summed in ((normed, x + delta), (normed_alone, x)):
        expected = F.rms_norm(summed, (width,), weight, EPS)
        torch.testing.assert_close(ours, expected, rtol=tolerance, atol=1e-6)
        assert (ours == expected).float().mean() > {torch.bfloat16: 0.99, torch.float32: 0.3}[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
def test_neighbours_change_nothing(dtype: torch.dtype) -> None:
    x, delta, weight = rows(9, 65, dtype), rows(9, 65, dtype, 1), rows(1, 65, dtype, 2)[0]
    with torch.inference_mode():
        together = add_norm(x, delta, weight, EPS)
        apart = [add_norm(x[i : i + 1], delta[i : i + 1], weight, EPS) for i in range(9)]
    for part in (0, 1):
        assert torch.equal(together[part], torch.cat([pair[part] for pair in apart]))


def test_a_view_with_gaps_is_read_as_it_stands() -> None:
    wide, weight = rows(4, 30, torch.bfloat16), rows(1, 10, torch.bfloat16, 2)[0]
    x, delta = wide[:, 10:20], wide[:, 20:]
    with torch.inference_mode():
        given = add_norm(x, delta, weight, EPS)
        copied = add_norm(x.contiguous(), delta.contiguous(), weight, EPS)
    assert all(torch.equal(a, b) for a, b in zip(given, copied, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_and_infinity_are_not_hidden(dtype: torch.dtype) -> None:
    x, weight = rows(3, 16, dtype), torch.ones(16, dtype=dtype)
    x[1, 3], x[2, 5] = float("nan"), float("inf")
    with torch.inference_mode():
        normed = add_norm(x, torch.zeros_like(x), weight, EPS)[1]
    assert normed[0].isfinite().all()
    assert normed[1].isnan().all()
    assert normed[2].isnan().any()


def test_what_the_kernel_does_not_know_goes_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> None:
        raise AssertionError("the kernel was asked")

    monkeypatch.setattr(norm, "_kernel", never)
    few, weight = rows(2, 8, torch.float32), torch.ones(8)
    with torch.inference_mode():
        add_norm(rows(MOST_ROWS + 1, 8, torch.float32), None, weight, EPS)
        add_norm(few.double(), None, weight.double(), EPS)
        add_norm(few.half(), None, weight.half(), EPS)
        add_norm(few, None, torch.ones(16)[::2], EPS)
    leaf = few.clone().requires_grad_()
    add_norm(leaf, leaf, weight, EPS)[1].sum().backward()
    assert leaf.grad is not None
