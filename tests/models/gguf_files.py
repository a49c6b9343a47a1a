"""Writes tiny GGUF files the way llama.cpp's converter does, to convert them back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["h e", "he l", "l o", "hel lo", "Ċ Ċ", "Ġ hello"]


def vocabulary() -> list[str]:
    """Three specials, the 256 bytes in GPT-2's spelling, the merged tokens."""
    from tokenizers.pre_tokenizers import ByteLevel

    return [*SPECIALS, *sorted(ByteLevel.alphabet()), *("".join(merge.split()) for merge in MERGES)]


def write_gguf(path: Path, config: Any, state: dict[str, Any], *, kind: str = "F32", **changes: Any) -> None:
    """`state` is a transformers Llama's; 2-d weights are stored as `kind`. `changes` override architecture or `pre`."""
    import gguf

    writer = gguf.GGUFWriter(path, changes.get("architecture", "llama"))
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    tokens = vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(changes.get("pre", "smollm"))
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(SPECIALS) + [1] * (len(tokens) - len(SPECIALS)))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    quant = gguf.GGMLQuantizationType[kind]
    for name, tensor in state.items():
        weight = tensor.numpy()
        for part, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if part in name:  # rotated pairs become neighbours
                halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
                weight = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(weight.shape)
        target = names.get_name(name, try_suffixes=(".weight",))
        if weight.ndim == 2 and kind != "F32":
            writer.add_tensor(target, gguf.quants.quantize(weight, quant), raw_dtype=quant)
        else:
            writer.add_tensor(target, weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
