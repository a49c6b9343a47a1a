"""TRL's GRPOTrainer doing what benchmarks.grpo_step asks, in TRL's own environment: one optimiser step when asked.

Its fastest settings on a CPU that keep the work equal: transformers' `generate` (vLLM is benchmarks.decode's rival),
all rollouts in one batch, no gradient checkpointing, one inner iteration on fresh rollouts (so old logprobs are not
computed again), beta 0 (no reference model), nothing logged, saved or shuffled. Full length is forced by
`min_new_tokens`. Precisions: `fp32`; `autocast`, fp32 weights under bf16 autocast; `bf16`, bf16 weights under bf16
autocast; `bf16-plain`, bf16 weights without autocast.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from datasets import Dataset
from peft import LoraConfig
from transformers import AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from benchmarks.rivals.channel import Channel, forget_peak, peak_mib, resident_mib
from benchmarks.rivals.words import ALPHA, BETAS, CLIP, EPS, LR, PROMPTS, RANK, TARGETS, vowel_share

COPIES = 256
"""Steps that one pass over the dataset lasts."""


def config(settings: dict[str, Any]) -> GRPOConfig:
    """See the module's docstring."""
    precision = settings["precision"]
    return GRPOConfig(
        output_dir=settings["scratch"],
        use_cpu=True,
        bf16=precision in ("autocast", "bf16"),
        model_init_kwargs={"dtype": "bfloat16" if precision.startswith("bf16") else "float32"},
        gradient_checkpointing=False,
        per_device_train_batch_size=settings["prompts"] * settings["group_size"],
        gradient_accumulation_steps=1,
        num_generations=settings["group_size"],
        num_iterations=1,
        max_completion_length=settings["new_tokens"],
        generation_kwargs={"min_new_tokens": settings["new_tokens"]},
        temperature=1.0,
        beta=0.0,
        epsilon=CLIP[0],
        epsilon_high=CLIP[1],
        scale_rewards="none",
        loss_type="dapo",
        learning_rate=LR,
        lr_scheduler_type="constant",
        adam_beta1=BETAS[0],
        adam_beta2=BETAS[1],
        adam_epsilon=EPS,
        weight_decay=0.0,
        max_grad_norm=1.0,
        max_steps=COPIES,
        shuffle_dataset=False,
        dataloader_pin_memory=False,
        logging_strategy="no",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        seed=0,
    )


class Turns(TrainerCallback):
    """Stops the trainer before each step until it is asked for, and tells what the step did."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.seen = 0.0
        self.sampled: list[int] = []
        """Tokens of each completion of the step, as the reward function got them."""

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.sampled.clear()
        if self.channel.receive() is None:
            os._exit(0)
        self.started = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        took = time.perf_counter() - self.started
        total, self.seen = state.num_input_tokens_seen - self.seen, state.num_input_tokens_seen
        sampled = sum(self.sampled)
        self.channel.send(
            seconds=took,
            prompt_tokens=total - sampled,
            sampled_tokens=sampled,
            trained_tokens=sampled,
            peak_mib=peak_mib(),
        )


def main(channel: Channel, settings: dict[str, Any]) -> None:
    turns = Turns(channel)

    def vowels(completions: list[Any], completion_ids: list[list[int]], **_: Any) -> list[float]:
        turns.sampled.extend(len(ids) for ids in completion_ids)
        return [vowel_share(completion[0]["content"]) for completion in completions]

    rows = [{"prompt": [{"role": "user", "content": text}]} for text in PROMPTS[: settings["prompts"]]]
    trainer = GRPOTrainer(
        model=settings["model"],
        reward_funcs=vowels,
        args=config(settings),
        train_dataset=Dataset.from_list(rows * COPIES),
        processing_class=AutoTokenizer.from_pretrained(settings["model"], padding_side="left"),
        peft_config=LoraConfig(
            r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, target_modules=list(TARGETS), task_type="CAUSAL_LM"
        ),
        callbacks=[turns],
    )
    forget_peak()
    channel.send(loaded_mib=resident_mib())
    trainer.train()


if __name__ == "__main__":
    main(Channel(), json.loads(sys.argv[1]))
