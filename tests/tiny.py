"""A random decoder of a few thousand weights, for tests of engine and trainer that need no language."""

from __future__ import annotations

import torch

from sortie.core.policy import LoraConfig
from sortie.models.config import DecoderConfig
from sortie.models.decoder import Decoder
from sortie.models.lora import Lora

VOCAB = 300


def tiny_config(**changes: object) -> DecoderConfig:
    settings: dict[str, object] = {
        "family": "llama",
        "vocab": VOCAB,
        "hidden": 32,
        "feed_forward": 48,
        "layers": 2,
        "heads": 4,
        "kv_heads": 2,
        "head_dim": 8,
        "norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "rope_scaling": None,
        "tied_head": True,
        "max_positions": 512,
    }
    return DecoderConfig(**{**settings, **changes})  # type: ignore[arg-type]


def tiny_decoder(seed: int = 0, scale: float = 0.3, dtype: torch.dtype = torch.float32) -> Decoder:
    """Weights large enough that the next-token law is far from uniform."""
    config = tiny_config()
    g = torch.Generator().manual_seed(seed)
    q, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    shapes = {"model.embed_tokens.weight": (VOCAB, config.hidden), "model.norm.weight": (config.hidden,)}
    for i in range(config.layers):
        at = f"model.layers.{i}."
        shapes |= {
            at + "input_layernorm.weight": (config.hidden,),
            at + "post_attention_layernorm.weight": (config.hidden,),
            at + "self_attn.q_proj.weight": (q, config.hidden),
            at + "self_attn.k_proj.weight": (kv, config.hidden),
            at + "self_attn.v_proj.weight": (kv, config.hidden),
            at + "self_attn.o_proj.weight": (config.hidden, q),
            at + "mlp.gate_proj.weight": (config.feed_forward, config.hidden),
            at + "mlp.up_proj.weight": (config.feed_forward, config.hidden),
            at + "mlp.down_proj.weight": (config.hidden, config.feed_forward),
        }
    state = {name: (torch.randn(shape, generator=g) * scale).to(dtype) for name, shape in shapes.items()}
    for name in state:
        if "norm" in name:
            state[name] = torch.ones_like(state[name])
    return Decoder.from_state(config, state)


def random_lora(decoder: Decoder, seed: int = 1, rank: int = 4) -> Lora:
    """An adapter that changes the model: B is not zero."""
    lora = Lora.create(LoraConfig(rank=rank, alpha=2.0 * rank), decoder.config, seed=seed)
    g = torch.Generator().manual_seed(seed + 100)
    for name, tensor in lora.tensors.items():
        if name.endswith(".B"):
            tensor.copy_(torch.randn(tensor.shape, generator=g) * 0.2)
    return lora


def flat_logprobs(
    decoder: Decoder, tokens: list[int], lora: Lora | None = None, temperature: float = 1.0
) -> torch.Tensor:
    """log p of every next token from one plain causal pass, [T, V]."""
    from sortie.models.attention import CausalAttend

    attend = CausalAttend([len(tokens)])
    delta = lora.fuse() if lora is not None else None
    hidden = decoder.forward(torch.tensor(tokens), attend.positions_T, attend, delta)
    return (decoder.logits(hidden) / temperature).log_softmax(-1)
