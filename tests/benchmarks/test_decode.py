"""The pure parts of benchmarks.decode: prompts, rows, targets, the memory floor."""

from __future__ import annotations

import pytest

from benchmarks.decode import FULL, PROMPT, QUICK, Side, Times, make_row, make_targets, measure, prompts
from benchmarks.floor import adapter_bytes, kv_bytes, weight_bytes
from sortie.models.config import DecoderConfig

CONFIG = DecoderConfig(
    family="llama",
    vocab=100,
    hidden=8,
    feed_forward=16,
    layers=2,
    heads=2,
    kv_heads=1,
    head_dim=4,
    norm_eps=1e-5,
    rope_theta=1e4,
    rope_scaling=None,
    tied_head=True,
    max_positions=64,
)


class Clock:
    """A side that takes a second to read its prompts and `step_s` a token, and remembers what it was asked."""

    def __init__(self, step_s: float) -> None:
        self.step_s = step_s
        self.asked: list[tuple[list[list[int]], int]] = []

    def __call__(self, prompts: list[list[int]], tokens: int) -> float:
        self.asked.append((prompts, tokens))
        return 1.0 + self.step_s * tokens


def side(name: str, adapter: str, ask: Clock) -> Side:
    return Side(name, adapter, "bf16", ask)


def test_prompts_depend_on_their_key_alone_and_share_no_beginning() -> None:
    assert prompts(4, "a") == prompts(4, "a")
    both = prompts(32, "a") + prompts(32, "b")
    assert all(len(prompt) == PROMPT for prompt in both)
    assert len({tuple(prompt[:2]) for prompt in both}) == 64


def test_every_side_gets_the_same_prompts_and_lengths_and_none_twice() -> None:
    ours, theirs = Clock(0.1), Clock(0.2)
    measure([side("sortie bf16", "on", ours), side("vllm", "on", theirs)], rows=4, tokens=8, repeats=2)
    assert ours.asked == theirs.asked
    assert [length for _, length in ours.asked] == [1, 2, 1, 8, 1, 8]
    seen = [tuple(prompt) for rows, _ in ours.asked for prompt in rows]
    assert len(set(seen)) == len(seen)


def test_the_time_of_reading_prompts_is_not_in_the_decoding_rate() -> None:
    ours, theirs = side("sortie bf16", "on", Clock(0.1)), side("vllm", "on", Clock(0.2))
    times = measure([ours, theirs], rows=4, tokens=11, repeats=3)
    mine, other = times["sortie bf16", "on"], times["vllm", "on"]
    row = make_row(theirs, other, mine, 4, 11, CONFIG, bandwidth=1e6)
    assert row["decode_per_s"] == pytest.approx(4 / 0.2)
    assert row["whole_per_s"] == pytest.approx(4 * 11 / 3.2)
    assert row["sortie_bf16_is_x"] == pytest.approx(2.0)
    step = weight_bytes(CONFIG, "bf16") + adapter_bytes(CONFIG, "bf16", 16) + kv_bytes(CONFIG, "bf16", 4, 21.5)
    assert row["floor"] == pytest.approx(step / 1e6 / 0.2)


def test_nothing_is_said_of_decoding_where_prompts_took_all_the_time() -> None:
    ours = Times(whole=[3.0], first=[1.0])
    row = make_row(side("peft", "on", Clock(0.1)), Times(whole=[2.2], first=[2.5]), ours, 4, 11, CONFIG, bandwidth=1e6)
    assert row["decode_per_s"] == row["floor"] == row["sortie_bf16_is_x"] == ""
    assert row["whole_per_s"] == pytest.approx(20.0)


def test_a_hiccup_while_reading_prompts_spoils_no_rate() -> None:
    assert Times(whole=[3.0, 3.0, 3.2], first=[1.0, 9.0, 1.0]).decode == pytest.approx([2.0, 2.0, 2.2])


def test_bytes_of_a_step_are_those_of_the_weights_the_adapter_and_the_cache() -> None:
    per_layer = 8 * 8 + 2 * 4 * 8 + 8 * 8 + 3 * 16 * 8 + 2 * 8
    assert weight_bytes(CONFIG, "fp32") == 4 * (2 * per_layer + 100 * 8 + 8)
    sums = 2 * (8 + 8) + 2 * (4 + 8) + 3 * (8 + 16)
    assert adapter_bytes(CONFIG, "bf16", 3) == 2 * 2 * 3 * sums
    assert kv_bytes(CONFIG, "bf16", 5, 10.0) == 2 * 2 * 2 * 4 * 5 * 10


def test_targets_cover_every_batch_size_and_say_what_was_not_measured() -> None:
    """No slower than vLLM on one row, 1.5x on more with the adapter, 1.15x without."""
    fast, slow = Times(whole=[2.0, 2.0], first=[1.0, 1.0]), Times(whole=[2.4, 2.6], first=[1.0, 1.0])
    targets = make_targets({8: {("sortie bf16", "on"): fast, ("vllm", "on"): slow, ("sortie bf16", "off"): fast}})
    assert len(targets) == 2 * len(FULL.tokens)
    by_name = {target["name"]: target for target in targets}
    measured = by_name.pop("adapter on, 8 rows, against vLLM")
    assert [measured[k] for k in ("low", "value", "high")] == pytest.approx([1.4, 1.5, 1.6])
    assert measured["met"] is True
    assert by_name["adapter on, 1 rows, against vLLM"]["target"] == 1.0
    assert by_name["adapter off, 8 rows, against vLLM"]["target"] == 1.15
    assert all(target["met"] is None and target["value"] is None for target in by_name.values())


def test_a_quick_run_measures_sizes_of_the_full_one() -> None:
    assert set(QUICK.tokens) <= set(FULL.tokens)
