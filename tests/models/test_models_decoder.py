"""The decoder computes what transformers computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from sortie.core.errors import UsageError
from sortie.models.attention import CausalAttend
from sortie.models.config import DecoderConfig
from sortie.models.decoder import Decoder
from sortie.models.weights import read_weights

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama-gqa": ("Llama", {}),
    "llama-tied": ("Llama", {"tie_word_embeddings": True}),
    "llama-mha-biased": ("Llama", {"num_key_value_heads": 4, "attention_bias": True}),
    "llama-mqa-wide-heads": ("Llama", {"num_key_value_heads": 1, "head_dim": 16}),
    "llama-theta": ("Llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500_000.0}}),
    "llama-scaled-llama3": ("Llama", {"rope_parameters": LLAMA3}),
    "llama-scaled-linear": ("Llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}}),
    "llama-norm-eps": ("Llama", {"rms_norm_eps": 1e-2}),
    "qwen2": ("Qwen2", {}),
    "qwen2-tied": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "qwen3-tied": ("Qwen3", {"head_dim": 8, "tie_word_embeddings": True}),
    "mistral": ("Mistral", {"sliding_window": None}),
    "mistral-window-never-reached": ("Mistral", {"sliding_window": 4096}),
}


@pytest.mark.parametrize("case", CASES)
def test_logits_equal_those_of_transformers(case: str, tiny: Any) -> None:
    """Two sequences side by side, past the original context of the llama3 scaling."""
    family, settings = CASES[case]
    folder, model = tiny(family, **settings)
    decoder = Decoder.load(folder)
    short, long = torch.arange(5) * 7 % 101, torch.arange(60) * 13 % 101
    attend = CausalAttend([5, 60])
    with torch.inference_mode():
        found = decoder.logits(decoder.forward(torch.cat([short, long]), attend.positions_T, attend))
        expected = torch.cat([model(ids[None]).logits[0] for ids in (short, long)])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert decoder.parameters == sum(weight.numel() for weight in model.parameters())


def test_a_sharded_folder_loads_like_a_single_file(tiny: Any) -> None:
    folder, model = tiny("Llama")
    whole = read_weights(folder, dtype=torch.float32)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    shards = read_weights(folder, dtype=torch.float32)
    assert shards.keys() == whole.keys()
    assert all(torch.equal(shards[name], whole[name]) for name in whole)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"model_type": "mistral", "sliding_window": 32}, "sliding-window"),
        ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 32}, "sliding-window"),
        ({"model_type": "llama", "rope_scaling": {"type": "dynamic", "factor": 2.0}}, "dynamic"),
        ({"model_type": "llama", "hidden_act": "gelu"}, "gelu"),
        ({"model_type": "llama", "mlp_bias": True}, "biases"),
        ({"model_type": "mamba"}, "mamba"),
    ],
)
def test_what_the_decoder_would_get_wrong_is_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        DecoderConfig.from_hf({"max_position_embeddings": 128, **settings})


def test_a_weight_that_fits_nowhere_is_refused(tiny: Any) -> None:
    """Pain I4."""
    folder, _ = tiny("Llama")
    state = read_weights(folder, dtype=torch.float32)
    state["model.layers.0.self_attn.gate.weight"] = torch.zeros(1)
    with pytest.raises(UsageError, match="fit nowhere"):
        Decoder.from_state(DecoderConfig.read(folder), state)


def test_a_missing_weight_is_named(tiny: Any) -> None:
    """Pain I4."""
    folder, _ = tiny("Llama")
    state = read_weights(folder, dtype=torch.float32)
    del state["model.layers.1.mlp.up_proj.weight"]
    with pytest.raises(UsageError, match=r"lack 'model\.layers\.1\.mlp\.up_proj\.weight'"):
        Decoder.from_state(DecoderConfig.read(folder), state)


def test_missing_weights_are_one_line(tiny: Any) -> None:
    folder, _ = tiny("Llama")
    (folder / "model.safetensors").write_bytes(b"cut short")
    with pytest.raises(UsageError, match="cannot read weights"):
        Decoder.load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(UsageError, match=r"has no model\.safetensors: weights in other formats"):
        Decoder.load(folder)


@pytest.mark.model
def test_smollm2_equals_transformers(smollm2: Any) -> None:
    from transformers import AutoModelForCausalLM

    decoder, ids = Decoder.load(smollm2), torch.arange(40) * 997 % 49_152
    attend = CausalAttend([len(ids)])
    with torch.inference_mode():
        found = decoder.logits(decoder.forward(ids, attend.positions_T, attend)).log_softmax(-1)
        model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32)
        expected = model(ids[None]).logits[0].log_softmax(-1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
