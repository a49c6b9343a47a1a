from __future__ import annotations

import pytest
import torch

from sortie.training.logprobs import chosen_logprobs


@pytest.mark.parametrize("chunk", [1, 7, 64])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_logprobs_and_gradients_equal_those_of_all_logits_at_once(chunk: int, temperature: float) -> None:
    """Pain H1: also at another temperature than 1."""
    g = torch.Generator().manual_seed(0)
    hidden = torch.randn(20, 16, generator=g, requires_grad=True)
    head, targets = torch.randn(50, 16, generator=g), torch.randint(0, 50, (20,), generator=g)
    weights = torch.randn(20, generator=g)
    found = chosen_logprobs(hidden, head, targets, temperature, chunk)
    expected = (hidden @ head.T / temperature).log_softmax(-1).gather(1, targets.unsqueeze(1)).squeeze(1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    gradients = [torch.autograd.grad((x * weights).sum(), hidden)[0] for x in (found, expected)]
    torch.testing.assert_close(gradients[0], gradients[1], rtol=0, atol=1e-5)


def test_a_sure_token_keeps_its_small_gradient_in_bfloat16() -> None:
    """Where p is near 1, 1 - p is what trains: it is formed before rounding, not after."""
    head = torch.eye(8, dtype=torch.float64) * 8
    hidden = torch.eye(8, dtype=torch.float64)[:1]
    gradients = []
    for dtype in (torch.float64, torch.bfloat16):
        h = hidden.to(dtype).detach().requires_grad_()
        logprobs = chosen_logprobs(h, head.to(dtype), torch.tensor([0]), 1.0, 4)
        gradients.append(torch.autograd.grad(logprobs.sum(), h)[0].double())
    assert gradients[0][0, 0] < 0.05
    torch.testing.assert_close(gradients[1], gradients[0], rtol=0.02, atol=1e-6)


def test_without_gradients_only_logprobs_are_computed() -> None:
    hidden, head = torch.randn(5, 16), torch.randn(50, 16)
    with torch.no_grad():
        assert not chosen_logprobs(hidden, head, torch.arange(5), 1.0, 2).requires_grad
