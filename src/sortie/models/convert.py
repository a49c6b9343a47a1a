"""From a llama.cpp GGUF file to a folder in Hugging Face layout, tensor by tensor.

Weights come out as fp32, the values a quantised file stands for, exactly. Peak memory is one tensor, not the model.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sortie.core.errors import UsageError

if TYPE_CHECKING:
    from gguf import GGUFReader

Weights = NDArray[np.float32]

_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OUTER = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_SPECIAL = 3
"""GGUF token type of control tokens."""


def convert_gguf(source: Path, folder: Path) -> None:
    """Write config.json, model.safetensors, tokenizer files and chat template of `source` into the empty `folder`.

    Raises: UsageError if the file is no GGUF, or of an architecture or tokenizer this does not convert; OSError.
    """
    from gguf import GGUFReader

    try:
        reader = GGUFReader(source)
    except (ValueError, IndexError) as error:  # what the reader raises for foreign and for truncated files
        raise UsageError(f"{source} is not a readable GGUF file: {error}") from None
    facts = {name: field.contents() for name, field in reader.fields.items()}
    config = model_config(facts, tied="output.weight" not in {tensor.name for tensor in reader.tensors})
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", {k: config[k] for k in ("bos_token_id", "eos_token_id")})
    write_tokenizer(facts, folder)
    shapes = {hf_name(t.name): tuple(int(n) for n in reversed(t.shape)) for t in reader.tensors}
    write_safetensors(folder / "model.safetensors", shapes, _tensors(reader, config))


def model_config(facts: dict[str, Any], *, tied: bool) -> dict[str, Any]:
    """config.json from GGUF metadata.

    Raises: UsageError if the architecture is not llama.
    """
    if facts["general.architecture"] != "llama":
        raise UsageError(f"GGUF architecture {facts['general.architecture']!r} is not converted; only 'llama' is")
    heads, hidden = facts["llama.attention.head_count"], facts["llama.embedding_length"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "vocab_size": len(facts["tokenizer.ggml.tokens"]),
        "hidden_size": hidden,
        "intermediate_size": facts["llama.feed_forward_length"],
        "num_hidden_layers": facts["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": facts.get("llama.attention.head_count_kv", heads),
        "head_dim": facts.get("llama.attention.key_length", hidden // heads),
        "max_position_embeddings": facts["llama.context_length"],
        # GGUF stores fp32; its shortest spelling is the number the model's authors wrote.
        "rms_norm_eps": float(str(np.float32(facts["llama.attention.layer_norm_rms_epsilon"]))),
        "rope_theta": facts.get("llama.rope.freq_base", 10_000.0),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": tied,
        "bos_token_id": facts["tokenizer.ggml.bos_token_id"],
        "eos_token_id": facts["tokenizer.ggml.eos_token_id"],
        "pad_token_id": facts.get("tokenizer.ggml.padding_token_id"),
    }


def hf_name(name: str) -> str:
    """`blk.0.attn_q.weight` -> `model.layers.0.self_attn.q_proj.weight`.

    Raises: UsageError if the tensor has no place in a Llama.
    """
    if name in _OUTER:
        return _OUTER[name]
    parts = name.split(".")
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in _BLOCK and parts[3] == "weight":
        return f"model.layers.{parts[1]}.{_BLOCK[parts[2]]}.weight"
    raise UsageError(f"GGUF tensor {name!r} has no place in a Llama model")


def unpermute(weight: Weights, heads: int) -> Weights:
    """Rows of a query or key matrix in Hugging Face's order.

    llama.cpp rotates neighbouring rows of a head as pairs, Hugging Face the halves of a head.
    """
    half = weight.shape[0] // heads // 2
    return weight.reshape(heads, half, 2, -1).swapaxes(1, 2).reshape(weight.shape)


def write_tokenizer(facts: dict[str, Any], folder: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json and chat_template.jinja.

    Raises: UsageError if the vocabulary is not byte-level BPE split the way SmolLM does.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    kind = facts["tokenizer.ggml.model"], facts.get("tokenizer.ggml.pre")
    if kind != ("gpt2", "smollm"):
        raise UsageError(f"GGUF tokenizer {kind} is not converted; only ('gpt2', 'smollm') is")
    tokens = facts["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in facts["tokenizer.ggml.merges"]]
    backend = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    # llama.cpp's `smollm`: every digit by itself, then GPT-2's split. "\n\n1" depends on the former.
    split = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    backend.pre_tokenizer = pre_tokenizers.Sequence(split)
    backend.decoder = decoders.ByteLevel()
    special = [t for t, use in zip(tokens, facts["tokenizer.ggml.token_type"], strict=True) if use == _SPECIAL]
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    backend.save(str(folder / "tokenizer.json"))
    roles = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    names = {role: facts.get(f"tokenizer.ggml.{key}_token_id") for role, key in roles.items()}
    config: dict[str, Any] = {role: tokens[number] for role, number in names.items() if number is not None}
    config |= {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    config["model_max_length"] = facts["llama.context_length"]
    _write_json(folder / "tokenizer_config.json", config)
    if template := facts.get("tokenizer.chat_template"):
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


def write_safetensors(path: Path, shapes: dict[str, tuple[int, ...]], tensors: Iterator[tuple[str, Weights]]) -> None:
    """Write fp32 tensors one at a time, in the order of `shapes`; the library's own writer needs all of them at once.

    Format: https://github.com/huggingface/safetensors#format
    Raises: OSError.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, shape in shapes.items():
        size = 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for (name, tensor), expected in zip(tensors, shapes.items(), strict=True):
            if (name, tensor.shape) != expected:
                raise ValueError(f"tensor {name} {tensor.shape} where {expected} was announced")
            file.write(np.ascontiguousarray(tensor, dtype="<f4").data)


def _tensors(reader: GGUFReader, config: dict[str, Any]) -> Iterator[tuple[str, Weights]]:
    from gguf.quants import dequantize

    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for tensor in reader.tensors:
        weight = dequantize(tensor.data, tensor.tensor_type)
        part = tensor.name.split(".")[-2]
        yield hf_name(tensor.name), unpermute(weight, heads[part]) if part in heads else weight


def _write_json(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
