"""What the decoder needs to know of an architecture, read from a Hugging Face config.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sortie.core.errors import UsageError

FAMILIES = ("llama", "qwen2", "qwen3", "mistral")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """Sizes of one decoder."""

    family: str
    vocab: int
    hidden: int
    feed_forward: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    norm_eps: float
    rope_theta: float
    rope_scaling: Mapping[str, Any] | None
    """Parameters of `linear` or `llama3` frequency scaling; None: unscaled."""
    tied_head: bool
    max_positions: int

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of keys and values one token holds, in fp32."""
        return 2 * 4 * self.layers * self.kv_heads * self.head_dim

    @classmethod
    def read(cls, folder: Path) -> DecoderConfig:
        """Raises: UsageError if config.json is missing or unreadable, or names an architecture outside FAMILIES."""
        return cls.from_hf(read_config(folder))

    @classmethod
    def from_hf(cls, raw: Mapping[str, Any]) -> DecoderConfig:
        """Raises: UsageError if the architecture, or a setting of it, is one this decoder does not compute."""
        problem = unsupported(raw)
        if problem:
            raise UsageError(problem)
        heads = raw["num_attention_heads"]
        rope = dict(raw.get("rope_parameters") or raw.get("rope_scaling") or {})
        kind = rope.get("rope_type", rope.get("type", "default"))
        return cls(
            family=raw["model_type"],
            vocab=raw["vocab_size"],
            hidden=raw["hidden_size"],
            feed_forward=raw["intermediate_size"],
            layers=raw["num_hidden_layers"],
            heads=heads,
            kv_heads=raw.get("num_key_value_heads") or heads,
            head_dim=raw.get("head_dim") or raw["hidden_size"] // heads,
            norm_eps=raw["rms_norm_eps"],
            rope_theta=float(rope.get("rope_theta") or raw.get("rope_theta") or 10_000.0),
            rope_scaling=None if kind == "default" else {**rope, "rope_type": kind},
            tied_head=bool(raw.get("tie_word_embeddings", False)),
            max_positions=raw.get("max_position_embeddings", 2048),
        )


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's config.json.

    Raises: UsageError if it is missing or not JSON.
    """
    path = folder / "config.json"
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError:
        raise UsageError(f"{folder} is not a model folder: it has no config.json") from None
    except ValueError as error:
        raise UsageError(f"{path} is not valid JSON: {error}") from None


def unsupported(raw: Mapping[str, Any]) -> str | None:
    """Why this decoder cannot compute that architecture; None if it can."""
    family = raw.get("model_type")
    if family not in FAMILIES:
        return f"model_type {family!r} is outside the decoder's families ({', '.join(FAMILIES)})"
    window = raw.get("sliding_window") if raw.get("use_sliding_window", family == "mistral") else None
    if window is not None and window < raw.get("max_position_embeddings", 2048):
        return f"sliding-window attention ({window}) is not computed by the decoder"
    if raw.get("hidden_act", "silu") != "silu":
        return f"activation {raw['hidden_act']!r} is not computed by the decoder"
    if raw.get("mlp_bias"):
        return "biases in the feed-forward layers are not computed by the decoder"
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in ("default", "linear", "llama3"):
        return f"rotary scaling {kind!r} is not computed by the decoder"
    return None
