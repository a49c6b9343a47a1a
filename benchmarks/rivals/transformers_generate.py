"""transformers' `generate` doing what benchmarks.decode asks, bfloat16, with PEFT where an adapter is asked for.

It draws at temperature 1 over the whole vocabulary, never stops early, and keeps the scores, from which the logprobs of
the drawn tokens come. Its KV cache is `generate`'s own.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, GenerationConfig
from transformers.utils import logging

from benchmarks.rivals.channel import Channel


def generate(model: Any, prompts: list[list[int]], tokens: int) -> dict[str, Any]:
    """`tokens` more for each prompt, all of one length; seconds, and how many tokens and logprobs came out."""
    ids_BT = torch.tensor(prompts)
    settings = GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=tokens,
        eos_token_id=None,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_scores=True,
    )
    started = time.perf_counter()
    with torch.inference_mode():
        out = model.generate(
            input_ids=ids_BT,
            attention_mask=torch.ones_like(ids_BT),
            generation_config=settings,
        )
        logprobs_BT = torch.stack(
            [
                scores_BV.float().log_softmax(1).gather(1, out.sequences[:, ids_BT.shape[1] + at, None])[:, 0]
                for at, scores_BV in enumerate(out.scores)
            ],
            dim=1,
        )
    seconds = time.perf_counter() - started
    drawn = out.sequences[:, ids_BT.shape[1] :].numel()
    return {"seconds": seconds, "drawn": drawn, "logprobs": int(logprobs_BT.isfinite().sum())}


def main(channel: Channel, settings: dict[str, Any]) -> None:
    logging.set_verbosity_error()
    base = AutoModelForCausalLM.from_pretrained(settings["model"], dtype=torch.bfloat16).eval()
    base.generation_config = GenerationConfig()  # else the folder's own fills in what a call leaves open, ends included
    adapted = settings["adapter"] is not None
    model = PeftModel.from_pretrained(base, settings["adapter"]).to(torch.bfloat16).eval() if adapted else base
    channel.send(threads=torch.get_num_threads())
    while (order := channel.receive()) is not None:
        channel.send(**generate(model, order["prompts"], order["tokens"]))


if __name__ == "__main__":
    main(Channel(), json.loads(sys.argv[1]))
