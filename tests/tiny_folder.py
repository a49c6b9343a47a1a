"""A whole model folder in Hugging Face layout with a few thousand random weights: one token per byte, chat template."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Generator, ones, randn

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HIDDEN, FEED_FORWARD, LAYERS, HEADS, KV_HEADS = 32, 48, 2, 4, 2


def make_tiny_folder(folder: Path, seed: int = 0) -> Path:
    """Write the folder. Its texts are noise, but every layer of the system can run on it in milliseconds."""
    folder.mkdir(parents=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIALS))
    tokenizer.save(str(folder / "tokenizer.json"))
    end = tokenizer.token_to_id("<|im_end|>")
    vocab = tokenizer.get_vocab_size()
    write(folder / "tokenizer_config.json", {"eos_token": "<|im_end|>", "chat_template": TEMPLATE})
    write(folder / "generation_config.json", {"eos_token_id": end})
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": vocab,
        "hidden_size": HIDDEN,
        "intermediate_size": FEED_FORWARD,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "eos_token_id": end,
    }
    write(folder / "config.json", config)
    save_file(_weights(vocab, seed), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))


def _weights(vocab: int, seed: int) -> dict[str, object]:
    generator = Generator().manual_seed(seed)
    kv = HIDDEN // HEADS * KV_HEADS
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocab, HIDDEN), "model.norm.weight": (HIDDEN,)}
    for i in range(LAYERS):
        at = f"model.layers.{i}"
        shapes |= {f"{at}.input_layernorm.weight": (HIDDEN,), f"{at}.post_attention_layernorm.weight": (HIDDEN,)}
        shapes |= {f"{at}.self_attn.{p}_proj.weight": (HIDDEN, HIDDEN) for p in "qo"}
        shapes |= {f"{at}.self_attn.{p}_proj.weight": (kv, HIDDEN) for p in "kv"}
        shapes |= {f"{at}.mlp.{p}_proj.weight": (FEED_FORWARD, HIDDEN) for p in ("gate", "up")}
        shapes[f"{at}.mlp.down_proj.weight"] = (HIDDEN, FEED_FORWARD)
    return {
        name: ones(shape) if len(shape) == 1 else randn(shape, generator=generator) * 0.3
        for name, shape in shapes.items()
    }
