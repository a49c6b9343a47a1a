"""Make the model `tiny`: a Llama of about a million weights that half knows how to act in the catalog's environments.

The oracles' episodes go through the real rollout path, so their texts are what reinforcement learning will see. A BPE
is trained on them, then a small decoder imitates the oracles' turns, and at the end players who slip half of the time:
it knows what to do in each environment and does it now and then, and the rest is left to be learned by reinforcement.

    python recipes/tiny/make.py                  # the environments of run.toml, into the package's data

Same seed, thread count and torch: same weights.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from muon import Muon
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from torch.nn import functional as F

from sortie import envs
from sortie.context.limits import Limits
from sortie.context.seeds import RolloutKey
from sortie.core.config import load
from sortie.core.errors import ConfigError
from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.envs import Env
from sortie.inference.client import SampleRequest
from sortie.inference.renderers.smollm import SmolLMRenderer
from sortie.inference.scripted import ScriptedClient
from sortie.models.config import DecoderConfig
from sortie.models.decoder import Decoder
from sortie.models.tokenizer import ChatTokenizer
from sortie.orchestrator.config import RunConfig
from sortie.rollouts.engine import RolloutEngine
from sortie.training.trie import Tokens, TrieAttend, packs_of

HERE = Path(__file__).parent
PACKAGED = HERE.parent.parent / "src" / "sortie" / "models" / "tiny"

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END = "<|im_end|>"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# A word is the same token whether a space, a quote or a brace stands before it, and every digit is one token: copying
# from a prompt into a call, which is most of what there is to learn, is then token for token.
PIECES = Regex(r"\p{L}+|\p{N}|\n|[^\p{L}\p{N}\n]+")

SEED = 1
"""Of tasks, weights and order. Not 0, the default of runs: no task of theirs is imitated unless drawn twice."""
VOCAB = 2048
PER_LEVEL = 700
"""Episodes imitated per level of an environment."""
PER_LEVEL_LEASED = 200
"""At most, where a rollout needs resources: they take time to start."""
ENOUGH = 0.25
"""Share of an environment's oracle episodes, as drawn at temperature 1, at which it is hardly imitated any more."""
LEAST_SHARE = 0.05
"""What remains of its sampling weight then, so that it is not forgotten."""
BATCH = 32
PEAK_LR = 4e-3
WARMUP = 30
COOLDOWN = 0.3
"""Share of the steps, at the end, over which the learning rate falls to zero."""
SLIPS = 0.5
"""Share of the episodes imitated during the cooldown that end in a slip: a turn said as if the task were another. So
the model knows what to do and does it some of the time; which of its ways is rewarded is for reinforcement to find."""

SIZES: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "float16",
}

Piece = tuple[str, bool]
"""Text of one node of a trajectory, and whether the oracle said it."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One oracle episode in tokens: `targets` are the positions whose next token the oracle chose."""

    tokens: Tokens
    targets: Tokens


# 1. What the oracles do, through the real rollout path ---------------------------------------------------------------


def chosen_envs(run: Path, per_level: int) -> list[Env]:
    """The environments of a run file, with its options, on other training tasks."""
    out = []
    for table in load(RunConfig, run).env:
        leased = bool(envs.build(table.name, **table.options).needs)
        wanted = min(per_level, PER_LEVEL_LEASED) if leased else per_level
        out.append(with_tasks(table.name, {**table.options, "seed": SEED}, wanted))
    return out


def with_tasks(name: str, options: Mapping[str, Any], per_level: int) -> Env:
    """The environment with that many training tasks per level, or as many as its levels have."""
    while True:
        env = envs.build(name, **{**options, "tasks_per_level": per_level})
        try:
            env.tasks("train")
            return env
        except ConfigError:
            if per_level < 10:
                raise
            per_level //= 2


async def oracle_pieces(env: Env, renderer: SmolLMRenderer) -> list[list[Piece]]:
    """Every training task as its oracle solves it.

    Raises: SystemExit if an oracle fails: an environment whose oracle is wrong must not be imitated.
    """
    if env.oracle is None:
        raise SystemExit(f"environment {env.name!r} has no oracle to imitate")
    tasks = list(env.tasks("train"))
    scripts = {rollout_id(task): iter(env.oracle(task)) for task in tasks}

    def reply(request: SampleRequest) -> Message:
        return next(scripts[request.session or ""])

    limits = Limits(turn_tokens=4096, rollout_tokens=16384, window=65536)
    async with RolloutEngine(
        ScriptedClient(reply, renderer=renderer), renderer, limits=limits, max_concurrent=4
    ) as engine:
        played = await asyncio.gather(*(engine.run_one(env, task) for task in tasks))
    failed = [t for t in played if t.reward is None or t.reward < 1 or t.prefix_breaks]
    if failed:
        raise SystemExit(f"the oracle of {env.name!r} failed on {failed[0].task_key}: {failed[0]}")
    return [[(renderer.decode(node.token_ids), node.kind == "sampled") for node in t.nodes] for t in played]


def rollout_id(task: Task) -> str:
    """The id of a task's only rollout, which is the session of its requests."""
    return RolloutKey(run_seed=0, task_key=task.key, visit=0, member=0).id


# 2. A vocabulary of their words --------------------------------------------------------------------------------------


def tokenizer_of(texts: Iterator[str] | None = None) -> Tokenizer:
    """A byte-level BPE trained on the texts; without texts, one token per byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(PIECES, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    if texts is None:
        made.add_special_tokens(list(SPECIALS))
        return made
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB, min_frequency=3, initial_alphabet=alphabet, special_tokens=list(SPECIALS), show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    return made


def chat(tokenizer: Tokenizer) -> ChatTokenizer:
    """The tokenizer as renderers take it."""
    return ChatTokenizer(backend=tokenizer, chat_template=TEMPLATE, eos_ids=(tokenizer.token_to_id(END),))


def episode_of(pieces: Sequence[Piece], tokenizer: ChatTokenizer) -> Episode:
    """Nodes are encoded one by one, as the thread of a rollout does it."""
    ids: list[int] = []
    said: list[bool] = []
    for text, sampled in pieces:
        new = tokenizer.encode(text)
        ids += new
        said += [sampled] * len(new)
    return Episode(np.array(ids, dtype=np.int64), np.flatnonzero(said) - 1)


# 3. Imitation --------------------------------------------------------------------------------------------------------


def fresh_weights(config: DecoderConfig) -> dict[str, Tensor]:
    """Random weights under their Hugging Face names; what writes to the residual stream starts small."""
    generator = torch.Generator().manual_seed(SEED)
    d, f, qkv = config.hidden, config.feed_forward, config.heads * config.head_dim

    def normal(rows: int, columns: int, scale: float = 1.0) -> Tensor:
        return torch.randn(rows, columns, generator=generator) * scale / math.sqrt(columns)

    out = {"model.embed_tokens.weight": normal(config.vocab, d), "model.norm.weight": torch.ones(d)}
    small = 1 / math.sqrt(2 * config.layers)
    for layer in range(config.layers):
        at = f"model.layers.{layer}."
        out |= {f"{at}self_attn.{p}_proj.weight": normal(qkv, d) for p in "qkv"}
        out |= {f"{at}mlp.{p}_proj.weight": normal(f, d) for p in ("gate", "up")}
        out |= {f"{at}self_attn.o_proj.weight": normal(d, qkv, small), f"{at}mlp.down_proj.weight": normal(d, f, small)}
        out |= {f"{at}{p}_layernorm.weight": torch.ones(d) for p in ("input", "post_attention")}
    return {name: tensor.requires_grad_() for name, tensor in out.items()}


def negative_logs(decoder: Decoder, batch: Sequence[Episode]) -> list[Tensor]:
    """-log p of each token the oracle chose, per episode; what episodes share at their beginning is computed once."""
    (pack,) = packs_of([episode.tokens for episode in batch], pack_tokens=1 << 30)
    hidden_TD = decoder.forward(pack.tokens_T, pack.positions_T, TrieAttend(pack, decoder.device))
    places = [pack.places(row)[episode.targets] for row, episode in enumerate(batch)]
    targets = np.concatenate([episode.tokens[episode.targets + 1] for episode in batch])
    hidden_PD = hidden_TD.index_select(0, torch.from_numpy(np.concatenate(places)))
    losses_P = F.cross_entropy(hidden_PD @ decoder.head_VD.T, torch.from_numpy(targets), reduction="none")
    return list(losses_P.split([len(p) for p in places]))


def turns_of(episode: Episode) -> list[Tokens]:
    """The oracle's targets, turn by turn."""
    return np.split(episode.targets, np.flatnonzero(np.diff(episode.targets) > 1) + 1)


def slipped(episode: Episode, other: Episode, rng: random.Random) -> Episode:
    """The episode up to some turn, and that turn as the oracle said it of another task."""
    turns, others = turns_of(episode), turns_of(other)
    turn = rng.randrange(min(len(turns), len(others)))
    said = other.tokens[others[turn] + 1]
    start = turns[turn][0] + 1
    before = np.concatenate([np.empty(0, dtype=np.int64), *turns[:turn]])
    return Episode(
        np.concatenate([episode.tokens[:start], said]),
        np.concatenate([before, np.arange(start - 1, start - 1 + len(said))]),
    )


def lr_at(step: int, steps: int) -> float:
    """Up, level, down to zero."""
    return PEAK_LR * min(1.0, (step + 1) / WARMUP, (steps - step) / (COOLDOWN * steps))


def imitate(data: Mapping[str, Sequence[Episode]], config: DecoderConfig, steps: int) -> dict[str, Tensor]:
    """Weights that say what the oracles said, in each environment about as often as ENOUGH asks.

    How often is known without drawing: the mean over fresh episodes of the product of its tokens' probabilities, a
    lower bound of success at temperature 1. An environment's share of a batch falls as it nears ENOUGH.
    """
    weights = fresh_weights(config)
    matrices = {name: tensor for name, tensor in weights.items() if tensor.ndim == 2 and "embed" not in name}
    others = [tensor for name, tensor in weights.items() if name not in matrices]
    optimizers = (Muon(list(matrices.values())), torch.optim.AdamW(others, lr=0.0, betas=(0.9, 0.98), weight_decay=0.0))
    rng = random.Random(SEED)
    orders = {name: endless(episodes, random.Random(f"{SEED}/{name}")) for name, episodes in data.items()}
    known = dict.fromkeys(data, 0.0)
    started, seen = time.monotonic(), 0
    for step in range(steps):
        shares = [max(LEAST_SHARE, (ENOUGH - p) / ENOUGH) for p in known.values()]
        names = rng.choices(list(data), shares, k=BATCH)
        cooling = step >= (1 - COOLDOWN) * steps
        slips = [cooling and rng.random() < SLIPS for _ in names]
        batch = [
            slipped(next(orders[name]), next(orders[name]), rng) if slip else next(orders[name])
            for name, slip in zip(names, slips, strict=True)
        ]
        losses = negative_logs(Decoder.from_state(config, dict(weights)), batch)
        torch.cat(losses).mean().backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = lr_at(step, steps)
            optimizer.step()
            optimizer.zero_grad()
        for name, loss, slip in zip(names, losses, slips, strict=True):
            if not slip:
                known[name] += 0.03 * (math.exp(-loss.sum().item()) - known[name])
        seen += sum(len(loss) for loss in losses)
        if step % 50 == 49:
            said = " ".join(f"{name} {p:.2f}" for name, p in known.items())
            mean = torch.cat(losses).mean().item()
            print(
                f"{step + 1}/{steps} {time.monotonic() - started:.0f} s, loss {mean:.3f}, {seen} tokens: {said}",
                flush=True,
            )
    return {name: tensor.detach() for name, tensor in weights.items()}


def endless(episodes: Sequence[Episode], rng: random.Random) -> Iterator[Episode]:
    """Passes over the episodes, each in another order."""
    while True:
        yield from rng.sample(episodes, len(episodes))


# 4. The folder -------------------------------------------------------------------------------------------------------


def write_folder(
    folder: Path, tokenizer: Tokenizer, settings: Mapping[str, Any], weights: Mapping[str, Tensor]
) -> None:
    """The model in Hugging Face layout."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    spelled = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": SPECIALS[0], "eos_token": END}
    write_json(folder / "tokenizer_config.json", {**spelled, "pad_token": SPECIALS[0], "chat_template": TEMPLATE})
    write_json(folder / "generation_config.json", {"eos_token_id": settings["eos_token_id"]})
    write_json(folder / "config.json", settings)
    halves = {name: tensor.half().contiguous() for name, tensor in weights.items()}
    save_file(halves, folder / "model.safetensors", metadata={"format": "pt"})


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--run", type=Path, default=HERE / "run.toml", help="run file whose environments are imitated")
    parser.add_argument("--out", type=Path, default=PACKAGED, help="folder to write")
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--per-level", type=int, default=PER_LEVEL, help="episodes imitated per level")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    started = time.monotonic()
    bytewise = SmolLMRenderer(chat(tokenizer_of()))
    texts = {env.name: asyncio.run(oracle_pieces(env, bytewise)) for env in chosen_envs(options.run, options.per_level)}
    print(f"{time.monotonic() - started:.0f} s: {sum(map(len, texts.values()))} episodes", flush=True)
    tokenizer = tokenizer_of(text for episodes in texts.values() for episode in episodes for text, _ in episode)
    talk = chat(tokenizer)
    data = {name: [episode_of(pieces, talk) for pieces in episodes] for name, episodes in texts.items()}
    for name, episodes in data.items():
        tokens = np.mean([len(episode.tokens) for episode in episodes])
        said = np.mean([len(episode.targets) for episode in episodes])
        print(f"  {name}: {len(episodes)} episodes of {tokens:.0f} tokens, {said:.0f} the oracle's", flush=True)
    settings = {**SIZES, "vocab_size": tokenizer.get_vocab_size(), "eos_token_id": tokenizer.token_to_id(END)}
    weights = imitate(data, DecoderConfig.from_hf(settings), options.steps)
    write_folder(options.out, tokenizer, settings, weights)
    count, seconds = sum(tensor.numel() for tensor in weights.values()), time.monotonic() - started
    print(f"{seconds:.0f} s: {count} weights, vocabulary of {tokenizer.get_vocab_size()}, in {options.out}")


if __name__ == "__main__":
    main()
