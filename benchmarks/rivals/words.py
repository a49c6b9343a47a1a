"""The environment of benchmarks.grpo_step: prompts and a reward, the same for both sides. Standard library only."""

from __future__ import annotations

PROMPTS = (
    "Write one sentence about a river that runs through an old town in the north.",
    "Tell me in a few words what a baker does before the shop opens each day.",
    "Describe the sound of rain on a tin roof to someone who never heard it.",
    "Say why people keep small gardens even when they could buy all they need.",
)
"""Single-turn tasks."""

LR, BETAS, EPS, CLIP = 1e-5, (0.9, 0.95), 1e-8, (0.2, 0.28)
"""Optimiser and the loss's bounds, on both sides."""
RANK, ALPHA = 16, 32
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def vowel_share(text: str) -> float:
    """The reward: share of vowels among the characters. Siblings practically never tie, so that every group trains."""
    return sum(text.lower().count(vowel) for vowel in "aeiou") / max(1, len(text))
