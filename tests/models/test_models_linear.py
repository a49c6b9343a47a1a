from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from sortie.models.linear import Linear, product


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 2, 33])
@pytest.mark.parametrize("biased", [False, True])
def test_every_spelling_is_the_same_product(dtype: torch.dtype, rows: int, biased: bool) -> None:
    """As loaded, laid out for decoding, and with gradients."""
    torch.manual_seed(0)
    weight, x = torch.randn(4000, 48, dtype=dtype), torch.randn(rows, 48, dtype=dtype)
    bias = torch.randn(4000, dtype=dtype) if biased else None
    expected = F.linear(x.double(), weight.double(), bias.double() if bias is not None else None)
    linear = Linear(weight, bias)
    close = {"rtol": 2e-2, "atol": 5e-2} if dtype is torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-4}
    with torch.inference_mode():
        torch.testing.assert_close(linear(x).double(), expected, **close)
        torch.testing.assert_close(product(x, weight, bias).double(), expected, **close)
        linear.pack()
        torch.testing.assert_close(linear(x).double(), expected, **close)
    torch.testing.assert_close(linear(x).double(), expected, **close)
