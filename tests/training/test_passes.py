from __future__ import annotations

import numpy as np
import pytest
import torch

from sortie.core.datum import Datum
from sortie.core.errors import TrainingError
from sortie.models.lora import Lora
from sortie.training.config import TrainerConfig
from sortie.training.passes import run_pass
from tiny import flat_logprobs, random_lora, tiny_decoder

CLIP = {"clip_low": 0.2, "clip_high": 0.28}


def policy_rows(seed: int = 0, rows: int = 6) -> list[Datum]:
    """Rows sharing a prompt, with observation tokens inside whose arrays are arbitrary."""
    rng = np.random.default_rng(seed)
    prompt = rng.integers(0, 300, 20)
    data = []
    for _ in range(rows):
        tokens = np.concatenate([prompt, rng.integers(0, 300, rng.integers(8, 30))]).astype(np.int64)
        mask = np.zeros(len(tokens) - 1, np.float32)
        mask[19:] = rng.integers(0, 2, len(mask) - 19)
        mask[-1] = 1
        data.append(
            Datum(
                tokens[:-1],
                {
                    "target_tokens": tokens[1:],
                    "weights": mask / 50,
                    "logprobs": rng.uniform(-8, -2, len(mask)).astype(np.float32),
                    "advantages": mask * np.float32(rng.normal()),
                },
            )
        )
    return data


def flat_loss(lora: Lora, data: list[Datum], temperature: float) -> torch.Tensor:
    """The same loss written plainly: one row at a time, all logits."""
    decoder, total = tiny_decoder(), torch.zeros(())
    for d in data:
        logprobs = flat_logprobs(decoder, d.tokens.tolist(), lora, temperature)
        inputs = {name: torch.from_numpy(np.asarray(v)) for name, v in d.loss_inputs.items()}
        chosen = logprobs.gather(1, inputs["target_tokens"].unsqueeze(1)).squeeze(1)
        ratio = (chosen - inputs["logprobs"]).exp()
        surrogate = torch.minimum(ratio * inputs["advantages"], ratio.clamp(0.8, 1.28) * inputs["advantages"])
        total = total - (surrogate * inputs["weights"]).sum()
    return total


def gradients(lora: Lora) -> dict[str, torch.Tensor]:
    return {name: t.grad.clone() for name, t in lora.tensors.items() if t.grad is not None}


def trainable() -> Lora:
    lora = random_lora(tiny_decoder())
    for tensor in lora.tensors.values():
        tensor.requires_grad_(True)
    return lora


@pytest.mark.parametrize("pack_tokens", [64, 4096])
@pytest.mark.parametrize("remat", [False, True])
def test_loss_and_gradients_equal_those_of_flat_rows(pack_tokens: int, remat: bool) -> None:
    """Pain A8, A22: sharing prefixes, packing and chunking change nothing."""
    data, flat, packed = policy_rows(), trainable(), trainable()
    expected = flat_loss(flat, data, temperature=0.7)
    expected.backward()
    settings = TrainerConfig(pack_tokens=pack_tokens, logit_chunk=7, remat=remat)
    out = run_pass(tiny_decoder(), packed, settings, data, "ppo", {**CLIP, "temperature": 0.7}, backward=True)
    assert out.loss == pytest.approx(expected.item(), abs=1e-5)
    for name, gradient in gradients(flat).items():
        torch.testing.assert_close(gradients(packed)[name], gradient, atol=1e-5, rtol=1e-3)


def test_what_stands_at_unweighted_positions_never_matters() -> None:
    """Pain A19, A21, A23, A24: NaN, infinities and other logprobs under mask 0 change neither loss nor gradient."""
    results = []
    for poison in (0.0, float("nan"), float("inf")):
        data, lora = policy_rows(), trainable()
        for d in data:
            for name in ("logprobs", "advantages"):
                d.loss_inputs[name][d.loss_inputs["weights"] == 0] = poison
        out = run_pass(tiny_decoder(), lora, TrainerConfig(), data, "ppo", CLIP, backward=True)
        results.append((out.loss, gradients(lora)))
    for loss, grads in results[1:]:
        assert loss == results[0][0]
        assert all(torch.equal(grads[name], g) for name, g in results[0][1].items())


def test_rows_without_weight_change_nothing() -> None:
    """Pain A24: padding rows weigh nothing, in the sum and in every mean."""
    data, padding = policy_rows(), policy_rows(seed=9)
    for d in padding:
        d.loss_inputs["weights"][:] = 0
    alone = run_pass(tiny_decoder(), trainable(), TrainerConfig(), data, "ppo", CLIP, backward=False)
    beside = run_pass(tiny_decoder(), trainable(), TrainerConfig(), data + padding, "ppo", CLIP, backward=False)
    assert beside.loss == pytest.approx(alone.loss, abs=1e-6)
    assert beside.metrics["ratio"] == pytest.approx(alone.metrics["ratio"], abs=1e-5)


def test_logprobs_are_at_the_temperature_that_sampled() -> None:
    """Pain H1: at lag 0 the ratio is 1 at T = 0.6, because the trainer divides the logits as the sampler did."""
    decoder, lora = tiny_decoder(), random_lora(tiny_decoder())
    (d,) = policy_rows(rows=1)
    law = flat_logprobs(decoder, d.tokens.tolist(), lora, temperature=0.6)
    d.loss_inputs["logprobs"][:] = law.gather(1, torch.from_numpy(d.loss_inputs["target_tokens"])[:, None])[:, 0]
    out = run_pass(decoder, lora, TrainerConfig(), [d], "ppo", {**CLIP, "temperature": 0.6}, backward=False)
    assert out.metrics["ratio"] == pytest.approx(1.0, abs=1e-4)
    assert out.metrics["mismatch_max"] < 1e-4
    raw = run_pass(decoder, lora, TrainerConfig(), [d], "ppo", CLIP, backward=False)
    assert raw.metrics["mismatch_max"] > 0.1


def test_cross_entropy_goes_through_the_same_verbs() -> None:
    (d,) = policy_rows(rows=1)
    inputs = {name: d.loss_inputs[name] for name in ("target_tokens", "weights")}
    out = run_pass(
        tiny_decoder(), trainable(), TrainerConfig(), [Datum(d.tokens, inputs)], "cross_entropy", {}, backward=True
    )
    weighted = -(out.logprobs[0] * inputs["weights"]).sum()
    assert out.loss == pytest.approx(float(weighted), abs=1e-5)


def test_a_batch_with_nothing_to_train_is_refused() -> None:
    """Pain F1: an empty batch never reaches forward and backward."""
    (d,) = policy_rows(rows=1)
    d.loss_inputs["weights"][:] = 0
    with pytest.raises(TrainingError, match="every weight is 0"):
        run_pass(tiny_decoder(), trainable(), TrainerConfig(), [d], "ppo", CLIP, backward=True)
