"""A forward (and backward) pass of one adapter over rows: packs, logprobs at the weighted positions, the loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sortie.core.datum import Datum
from sortie.core.errors import TrainingError
from sortie.models.decoder import Decoder
from sortie.models.lora import Lora
from sortie.training.client import StepOutput
from sortie.training.config import TrainerConfig
from sortie.training.logprobs import chosen_logprobs
from sortie.training.losses import LOSSES
from sortie.training.trie import Pack, TrieAttend, packs_of


def run_pass(
    decoder: Decoder,
    lora: Lora,
    settings: TrainerConfig,
    data: Sequence[Datum],
    loss: str,
    config: Mapping[str, Any],
    *,
    backward: bool,
) -> StepOutput:
    """Sum of weight x loss over all rows, with its gradient left in the adapter if `backward`.

    `config["temperature"]` (default 1) divides the logits, as it did when the tokens were drawn.
    Raises: TrainingError if no position has a weight, or the loss is not finite.
    """
    if not any(np.any(d.loss_inputs["weights"] != 0) for d in data):
        raise TrainingError(f"none of the {len(data)} rows has a token to train on (every weight is 0)")
    function = LOSSES[loss]
    logprobs = [np.zeros(len(d.tokens), dtype=np.float32) for d in data]
    totals: dict[str, float] = {}
    loss_sum, tokens, computed = 0.0, 0, 0
    for pack in packs_of([d.tokens for d in data], settings.pack_tokens):
        where, inputs = _weighted_positions(pack, data, decoder.device)
        computed += len(pack.tokens_T)
        if not len(where):
            continue
        with torch.set_grad_enabled(backward):
            logprobs_P = _logprobs(decoder, lora, settings, pack, inputs, float(config.get("temperature", 1.0)))
            values_P, figures = function(logprobs_P, inputs, config)
            total = (values_P * inputs["weights"]).sum()
        if not torch.isfinite(total):
            raise TrainingError(f"the {loss} loss is {total.item()}: not finite")
        if backward:
            total.backward()
        loss_sum += total.item()
        tokens += len(where)
        for name, value_P in figures.items():
            totals[name] = totals.get(name, 0.0) + float(value_P.sum())
            if name == "mismatch":
                totals["mismatch_max"] = max(totals.get("mismatch_max", 0.0), float(value_P.max()))
        for (row, at), value in zip(where, logprobs_P.tolist(), strict=True):
            logprobs[row][at] = value
    metrics = {name: value if name.endswith("_max") else value / tokens for name, value in totals.items()}
    metrics |= {"tokens": tokens, "computed_tokens": computed, "row_tokens": sum(len(d.tokens) for d in data)}
    return StepOutput(loss=loss_sum, logprobs=logprobs, metrics=metrics)


def _logprobs(
    decoder: Decoder, lora: Lora, settings: TrainerConfig, pack: Pack, inputs: Mapping[str, Tensor], temperature: float
) -> Tensor:
    device = decoder.device
    hidden_TD = decoder.forward(
        pack.tokens_T.to(device),
        pack.positions_T.to(device),
        TrieAttend(pack, device),
        lora.fuse().to(decoder.dtype),
        remat=settings.remat and torch.is_grad_enabled(),
    )
    hidden_PD = hidden_TD.index_select(0, inputs["places"])
    return chosen_logprobs(hidden_PD, decoder.head_VD, inputs["target_tokens"], temperature, settings.logit_chunk)


def _weighted_positions(
    pack: Pack, data: Sequence[Datum], device: torch.device
) -> tuple[list[tuple[int, int]], dict[str, Tensor]]:
    """(row, position) of every weight that is not 0, and the rows' arrays there, flat, with their `places` in the pack.

    Positions without weight never reach the loss, whatever they hold.
    """
    where: list[tuple[int, int]] = []
    parts: dict[str, list[Any]] = {}
    for row in sorted(pack.rows):
        inputs = data[row].loss_inputs
        at = np.flatnonzero(inputs["weights"])
        where += [(row, int(i)) for i in at]
        for name, values in {**inputs, "places": pack.places(row)}.items():
            parts.setdefault(name, []).append(values[at])
    return where, {name: torch.from_numpy(np.concatenate(values)).to(device) for name, values in parts.items()}
