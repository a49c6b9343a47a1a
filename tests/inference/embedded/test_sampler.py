from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from sortie.inference.embedded.sampler import Draw, inverse_cdf, keyed_uniform, sample


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_inverse_cdf_agrees_with_the_plain_cumulative_sum(data: st.DataObject) -> None:
    vocab = data.draw(st.integers(1, 700))
    mass = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=vocab, max_size=vocab)))
    mass[data.draw(st.integers(0, vocab - 1))] += 1
    uniform = data.draw(st.floats(0, 1, exclude_max=True))
    pick = int(inverse_cdf(torch.tensor(mass[None], dtype=torch.float32), torch.tensor([uniform], dtype=torch.float64)))
    ends = mass.cumsum()
    assert mass[pick] > 0
    assert ends[pick] - mass[pick] <= uniform * ends[-1] + 1e-9
    assert uniform * ends[-1] <= ends[pick] + 1e-9


def test_draws_follow_the_distribution() -> None:
    torch.manual_seed(0)
    logits = torch.randn(1, 600)
    law = (logits / 0.7).softmax(-1)[0]
    draws = [Draw(uniform=keyed_uniform(5, 0, i), temperature=0.7) for i in range(20_000)]
    tokens, _ = sample(logits.expand(len(draws), -1), draws)
    seen = torch.bincount(torch.tensor(tokens), minlength=600) / len(draws)
    assert (seen - law).abs().sum() < 0.15  # total variation of 20,000 draws over 600 outcomes


def test_logprobs_are_of_the_whole_distribution_at_the_rows_temperature() -> None:
    """Pain H1: temperature is applied, truncation is not."""
    torch.manual_seed(0)
    logits = torch.randn(3, 500)
    draws = [
        Draw(uniform=0.3, temperature=0.6),
        Draw(uniform=0.9, temperature=1.5, top_k=5),
        Draw(uniform=0.9, temperature=1.0, top_p=0.2),
    ]
    tokens, logprobs = sample(logits, draws)
    for row, draw in enumerate(draws):
        law = (logits[row] / draw.temperature).log_softmax(-1)
        assert logprobs[row] == pytest.approx(law[tokens[row]].item(), abs=1e-5)


def test_truncation_keeps_to_the_likeliest_tokens() -> None:
    torch.manual_seed(0)
    logits = torch.randn(1, 500)
    likeliest = logits[0].argsort(descending=True).tolist()
    for u in (0.0, 0.4, 0.999999):
        assert sample(logits, [Draw(uniform=u, temperature=1.0, top_k=3)])[0][0] in likeliest[:3]
    assert sample(logits, [Draw(uniform=0.999, temperature=1.0, top_p=1e-6)])[0] == likeliest[:1]


def test_temperature_zero_takes_the_likeliest() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0]])
    assert sample(logits, [Draw(uniform=0.99, temperature=0.0)])[0] == [1]


@given(st.integers(0, 2**63 - 1), st.integers(0, 100), st.integers(0, 10_000))
def test_uniforms_depend_on_the_key_alone(seed: int, index: int, position: int) -> None:
    u = keyed_uniform(seed, index, position)
    assert 0 <= u < 1
    assert u == keyed_uniform(seed, index, position)
    assert u != keyed_uniform(seed, index, position + 1)
