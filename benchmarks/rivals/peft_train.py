"""transformers + PEFT doing what benchmarks.train asks, as a careful user would write it, in a process of its own.

Logits are computed at the sampled positions alone, gradients accumulate over micro-batches, rows are of one length so
that nothing is padded and attention takes its causal path. Precisions:

- `fp32`: base and adapter in float32;
- `autocast`: the same under `torch.autocast` to bfloat16;
- `bf16`: base in bfloat16, adapter in float32, under autocast, which is what Sortie's bfloat16 is;
- `bf16-all`: base, adapter and so the optimiser's weights in bfloat16: fast, and too coarse for small updates.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from benchmarks.rivals.channel import Channel, forget_peak, peak_mib, resident_mib
from benchmarks.rivals.trajectories import CLIP, Trajectories

TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def load(model: str, adapter: str, precision: str) -> PeftModel:
    """The model with an adapter that holds our initial weights."""
    dtype = torch.bfloat16 if precision.startswith("bf16") else torch.float32
    base = AutoModelForCausalLM.from_pretrained(model, dtype=dtype, attn_implementation="sdpa")
    config = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0, target_modules=TARGETS, task_type="CAUSAL_LM")
    wrapped = get_peft_model(base, config, autocast_adapter_dtype=precision != "bf16-all")
    parameters = dict(wrapped.named_parameters())
    with torch.no_grad(), np.load(adapter) as ours:
        for name in ours.files:
            path, _, which = name.rpartition(".")
            parameters.pop(f"base_model.model.model.{path}.lora_{which}.default.weight").copy_(
                torch.from_numpy(ours[name])
            )
    left = [name for name, parameter in parameters.items() if parameter.requires_grad]
    if left:
        raise ValueError(f"{len(left)} trainable weights were not copied, such as {left[0]}")
    wrapped.train()
    return wrapped


def chosen_logprobs(logits_BPV: Tensor, targets_BP: Tensor) -> Tensor:
    """log softmax at the targets, in float32, without a second tensor of the logits' size."""
    logits_BPV = logits_BPV.float()
    return logits_BPV.gather(2, targets_BP.unsqueeze(2)).squeeze(2) - logits_BPV.logsumexp(dim=2)


class Trainer:
    """One model under one precision."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.precision = settings["precision"]
        self.model = load(settings["model"], settings["adapter"], self.precision)
        self.trainable = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(
            self.trainable, lr=1e-6, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0, foreach=True
        )

    def step(self, rows: Trajectories, micro_batch: int, checkpointing: bool) -> dict[str, Any]:
        """Gradients of all rows, `micro_batch` at a time, and one optimiser step."""
        self._set_checkpointing(checkpointing)
        started = time.perf_counter()
        loss = sum(self._backward(rows, at, micro_batch) for at in range(0, len(rows.tokens), micro_batch))
        norm = torch.nn.utils.clip_grad_norm_(self.trainable, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return {
            "seconds": time.perf_counter() - started,
            "loss": loss,
            "grad_norm": norm.item(),
            "trained_tokens": len(rows.tokens) * int(rows.mask.sum()),
            "computed_tokens": len(rows.tokens) * (len(rows.mask) - 1),
            "peak_mib": peak_mib(),
        }

    def _backward(self, rows: Trajectories, at: int, micro_batch: int) -> float:
        tokens_BT = torch.from_numpy(rows.tokens[at : at + micro_batch])
        positions_P = torch.from_numpy(np.flatnonzero(rows.mask[1:]))
        behaviour_BP = torch.from_numpy(rows.logprobs[at : at + micro_batch])[:, 1:][:, positions_P]
        advantages_B1 = torch.from_numpy(rows.advantages[at : at + micro_batch]).unsqueeze(1)
        half = self.precision in ("autocast", "bf16")
        with torch.autocast("cpu", dtype=torch.bfloat16) if half else nullcontext():
            logits = self.model(input_ids=tokens_BT[:, :-1], logits_to_keep=positions_P, use_cache=False).logits
        logprobs_BP = chosen_logprobs(logits, tokens_BT[:, 1:][:, positions_P])
        ratio_BP = (logprobs_BP - behaviour_BP).exp()
        clipped_BP = ratio_BP.clamp(1 - CLIP["clip_low"], 1 + CLIP["clip_high"])
        loss = -torch.minimum(ratio_BP * advantages_B1, clipped_BP * advantages_B1).sum() * rows.weight
        loss.backward()
        return loss.item()

    def _set_checkpointing(self, on: bool) -> None:
        base = self.model.get_base_model()
        if on:
            base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        else:
            base.gradient_checkpointing_disable()


def main(channel: Channel, settings: dict[str, Any]) -> None:
    logging.set_verbosity_error()
    trainer = Trainer(settings)
    forget_peak()
    channel.send(loaded_mib=resident_mib())
    while (order := channel.receive()) is not None:
        rows = Trajectories.load(Path(order["path"])).first(order["rows"])
        channel.send(**trainer.step(rows, order["micro_batch"], order["checkpointing"]))


if __name__ == "__main__":
    main(Channel(), json.loads(sys.argv[1]))
