"""Architectures outside the decoder are computed through transformers, or refused; never silently wrong."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from sortie.core.errors import UsageError
from sortie.core.policy import LoraConfig
from sortie.models.attention import CausalAttend
from sortie.models.decoder import Decoder
from sortie.models.fallback import TransformersDecoder, is_native, load_decoder
from sortie.models.lora import Lora, RoutedLora

COMPUTED: dict[str, tuple[str, dict[str, Any]]] = {
    "scaled-logits": ("Granite", {"attention_multiplier": 0.3, "logits_scaling": 3.0}),
    "other-norm-and-activation": ("Gemma", {"head_dim": 8}),
    "partial-rotary-fused": ("Phi3", {}),
    "norms-after": ("Olmo2", {}),
    "mixture": ("Qwen3Moe", {"head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}),
    "learned-positions": ("GPT2", {"num_key_value_heads": 4}),
    "biased-feed-forward": ("Llama", {"mlp_bias": True}),
}
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "capped-attention": ("Gemma2", {"head_dim": 8}, "softcap"),
    "attention-sinks": ("GptOss", {"head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2}, "s_aux"),
    "convolutions": ("Lfm2", {"layer_types": ["conv", "full_attention"]}, "not every layer"),
    "state-space": ("Mamba", {}, "not every layer"),
    "latent-attention": ("DeepseekV3", {"num_key_value_heads": 4}, "keys .* or values"),
}


def logits(decoder: Decoder, *sequences: torch.Tensor, delta: Any = None) -> torch.Tensor:
    attend = CausalAttend([len(ids) for ids in sequences])
    with torch.inference_mode():
        return decoder.logits(decoder.forward(torch.cat(sequences), attend.positions_T, attend, delta))


@pytest.mark.parametrize("case", COMPUTED)
def test_it_equals_transformers_and_is_said_aloud(case: str, tiny: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Two sequences in one run do not see each other."""
    family, settings = COMPUTED[case]
    folder, model = tiny(family, **settings)
    with caplog.at_level(logging.WARNING, logger="sortie"):
        decoder = load_decoder(folder)
    assert "through transformers instead, correct but slower" in caplog.text
    short, long = torch.arange(9) * 7 % 101, torch.arange(30) * 13 % 101
    found = logits(decoder, short, long)
    plain = AutoModelForCausalLM.from_pretrained(folder)
    with torch.inference_mode():
        expected = torch.cat([plain(ids[None]).logits[0] for ids in (short, long)])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    assert decoder.parameters == sum(weight.numel() for weight in model.parameters())


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_would_get_wrong_is_refused(case: str, tiny: Any) -> None:
    family, settings, reason = REFUSED[case]
    folder, _ = tiny(family, **settings)
    with pytest.raises(UsageError, match=reason) as caught:
        load_decoder(folder)
    assert "\n" not in str(caught.value)


def test_a_family_of_ours_takes_our_decoder(tiny: Any, caplog: pytest.LogCaptureFixture) -> None:
    folder, _ = tiny("Qwen2")
    decoder = load_decoder(folder)
    assert not isinstance(decoder, TransformersDecoder)
    assert not [record for record in caplog.records if record.name.startswith("sortie")]
    assert is_native({"model_type": "qwen2"})
    assert not is_native({"model_type": "phi3"})


def test_a_sliding_window_bounds_the_positions_it_serves(tiny: Any) -> None:
    """Up to its window a sliding layer is plain attention; beyond it, the engine refuses the request."""
    folder, _ = tiny("Mistral", sliding_window=32)
    assert load_decoder(folder).config.max_positions == 32


@pytest.mark.parametrize("routed", [False, True], ids=["one adapter", "some tokens"])
def test_adapters_apply_as_in_the_decoder(routed: bool, tiny: Any) -> None:
    folder, _ = tiny("Llama")
    lora = Lora.create(LoraConfig(rank=3, alpha=6.0), Decoder.load(folder).config, seed=1)
    for tensor in lora.tensors.values():
        tensor.normal_(0.0, 0.2, generator=torch.Generator().manual_seed(2))
    ids = torch.arange(20) * 7 % 101
    delta = RoutedLora([(torch.arange(8, 20), lora.fuse())]) if routed else lora.fuse()
    found = logits(TransformersDecoder.load(folder), ids, delta=delta)
    expected = logits(Decoder.load(folder), ids, delta=delta)
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-5)
    assert (expected - logits(Decoder.load(folder), ids)).abs().max() > 0.1


def test_gradients_reach_every_adapter_tensor(tiny: Any) -> None:
    folder, _ = tiny("Olmo2")
    decoder = load_decoder(folder)
    lora = Lora.create(LoraConfig(rank=2), decoder.config, seed=1)
    for tensor in lora.tensors.values():
        tensor.normal_(0.0, 0.2).requires_grad_()
    attend = CausalAttend([6])
    hidden = decoder.forward(torch.arange(6), attend.positions_T, attend, lora.fuse())
    decoder.logits(hidden).square().sum().backward()
    assert all(t.grad is not None and t.grad.abs().sum() > 0 for t in lora.tensors.values())


def test_adapters_on_layers_built_otherwise_are_refused(tiny: Any) -> None:
    decoder = load_decoder(tiny("Phi3")[0])
    with pytest.raises(UsageError, match="adapters on 'phi3' models are not supported"):
        logits(decoder, torch.arange(4), delta=lambda layer, linear, x, y: y)


def test_an_architecture_nobody_knows_is_one_line(tiny: Any) -> None:
    folder, _ = tiny("Llama")
    (folder / "config.json").write_text('{"model_type": "of-tomorrow"}')
    with pytest.raises(UsageError, match="transformers cannot run") as caught:
        load_decoder(folder)
    assert "\n" not in str(caught.value)
