"""Tiny random models of any architecture, saved the way transformers saves them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

SIZES: dict[str, Any] = {
    "vocab_size": 101,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}

Tiny = Callable[..., tuple[Path, Any]]


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """`tiny("Llama", head_dim=16)` -> (folder, transformers model), all weights random, norms and biases too."""

    def make(family: str, **settings: Any) -> tuple[Path, Any]:
        config = getattr(transformers, f"{family}Config")(**{**SIZES, **settings})
        model = transformers.AutoModelForCausalLM.from_config(config)
        generator = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for weight in model.parameters():
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.3 + (weight.dim() == 1))
        folder = tmp_path / f"{family}-base"
        model.save_pretrained(folder)
        return folder, model.eval()

    return make


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this test's own; returns the folder that models go to."""
    monkeypatch.setenv("SORTIE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"
