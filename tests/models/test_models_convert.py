"""A GGUF file and the folder made from it are the same model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from gguf_files import TEMPLATE, vocabulary, write_gguf

from sortie.core.errors import UsageError
from sortie.models.convert import convert_gguf
from sortie.models.tokenizer import load_tokenizer
from sortie.models.weights import read_weights

LLAMA = {"vocab_size": len(vocabulary()), "rms_norm_eps": 1e-5}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "converted"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("tied", [False, True])
def test_transformers_loads_the_folder_as_the_same_model(tied: bool, tiny: Any, tmp_path: Path, target: Path) -> None:
    from transformers import AutoModelForCausalLM

    rope = {"rope_type": "default", "rope_theta": 50_000.0}
    _, model = tiny("Llama", **LLAMA, tie_word_embeddings=tied, rope_parameters=rope)
    state = {k: v for k, v in model.state_dict().items() if not (tied and k == "lm_head.weight")}
    write_gguf(tmp_path / "model.gguf", model.config, state)
    convert_gguf(tmp_path / "model.gguf", target)
    converted = AutoModelForCausalLM.from_pretrained(target)
    ids = torch.arange(20)[None] * 11 % len(vocabulary())
    assert converted.config.tie_word_embeddings is tied
    assert torch.equal(converted(ids).logits, model(ids).logits)


def test_quantised_weights_keep_exactly_the_values_they_stand_for(tiny: Any, tmp_path: Path, target: Path) -> None:
    import gguf

    _, model = tiny("Llama", **LLAMA, tie_word_embeddings=True, hidden_size=64, intermediate_size=96)
    state = {k: v for k, v in model.state_dict().items() if k != "lm_head.weight"}
    write_gguf(tmp_path / "model.gguf", model.config, state, kind="Q4_1")
    convert_gguf(tmp_path / "model.gguf", target)
    converted = read_weights(target, dtype=torch.float32)
    assert converted.keys() == state.keys()
    kind = gguf.GGMLQuantizationType.Q4_1
    for name, weight in state.items():
        expected = weight.numpy()
        if weight.dim() == 2:
            expected = gguf.quants.dequantize(gguf.quants.quantize(expected, kind), kind)
        assert torch.equal(converted[name], torch.from_numpy(expected)), name


def test_special_tokens_template_and_digits_survive(tiny: Any, tmp_path: Path, target: Path) -> None:
    _, model = tiny("Llama", **LLAMA)
    write_gguf(tmp_path / "model.gguf", model.config, model.state_dict())
    convert_gguf(tmp_path / "model.gguf", target)
    tokenizer = load_tokenizer(target)
    assert tokenizer.chat_template == TEMPLATE
    assert tokenizer.eos_ids == (2,)
    assert tokenizer.encode("<|im_start|>hello<|im_end|>") == [1, vocabulary().index("hello"), 2]
    # Digits stand apart, so the line breaks before one are a word of their own.
    assert tokenizer.encode("\n\n12") == [vocabulary().index(token) for token in ("ĊĊ", "1", "2")]
    assert json.loads((target / "config.json").read_text())["rms_norm_eps"] == 1e-5


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"architecture": "falcon"}, "architecture 'falcon'"), ({"pre": "qwen2"}, "tokenizer .*'qwen2'")],
)
def test_what_is_not_converted_is_named(
    changes: dict[str, str], reason: str, tiny: Any, tmp_path: Path, target: Path
) -> None:
    _, model = tiny("Llama", **LLAMA)
    write_gguf(tmp_path / "model.gguf", model.config, model.state_dict(), **changes)
    with pytest.raises(UsageError, match=reason):
        convert_gguf(tmp_path / "model.gguf", target)


@pytest.mark.parametrize("data", [b"", b"GGUF", b"not a model at all, only text" * 9])
def test_a_file_that_is_no_gguf_is_one_line(data: bytes, tmp_path: Path, target: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(data)
    with pytest.raises(UsageError, match="not a readable GGUF file"):
        convert_gguf(tmp_path / "model.gguf", target)
