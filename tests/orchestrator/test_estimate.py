from __future__ import annotations

from pathlib import Path

from small_run import config, env

from sortie.models.decoder import Decoder
from sortie.orchestrator.estimate import estimate


def test_weights_are_counted_as_the_decoder_counts_them(model: Path) -> None:
    """All but the norms, which are a few kilobytes."""
    counted = Decoder.load(model).parameters * 4
    assert 0.98 * counted < estimate(config(model), [env()]).weights <= counted


def test_bf16_halves_the_weights_and_remat_shrinks_training(model: Path) -> None:
    plain = estimate(config(model), [env()])
    assert estimate(config(model, dtype="bfloat16"), [env()]).weights == plain.weights / 2
    assert estimate(config(model, trainer={"remat": True}), [env()]).activations < plain.activations


def test_every_rollout_is_counted(model: Path) -> None:
    """Two steps of 2 x 6, and 4 held-out tasks before, after, and after step 1."""
    assert estimate(config(model, eval={"tasks": 4, "every": 1}), [env()]).rollouts == 2 * 12 + 4 * 4
