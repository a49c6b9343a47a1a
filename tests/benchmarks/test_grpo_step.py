from __future__ import annotations

import pytest

from benchmarks.grpo_step import SMALL, check_equal_work, check_exact, row, targets_of
from benchmarks.rivals.sortie_grpo import environment, run_config
from benchmarks.rivals.venv import RivalError
from benchmarks.rivals.words import PROMPTS, vowel_share

DONE = {"seconds": 1.0, "prompt_tokens": 400, "sampled_tokens": 256, "trained_tokens": 256, "peak_mib": 700.0}
SLOW = DONE | {"seconds": 5.0}


def test_the_reward_is_the_share_of_vowels() -> None:
    assert vowel_share("Aeb ") == 0.5
    assert vowel_share("") == 0.0


def test_every_prompt_is_a_task_of_the_environment() -> None:
    assert [task.prompt for task in environment(4).tasks("train")] == list(PROMPTS)


def test_our_side_is_a_run_file_like_any_other() -> None:
    config = run_config({"model": "tiny", "dtype": "bfloat16", "prompts": 4, "group_size": 8, "new_tokens": 64})
    assert config.rollouts.groups * config.rollouts.group_size == 32
    assert config.rollouts.limits.turn_tokens == 64


def test_work_that_differs_by_more_than_a_twentieth_ends_the_run() -> None:
    check_equal_work({"a": [DONE], "b": [DONE | {"prompt_tokens": 415}]})
    with pytest.raises(RivalError, match="not the same work: sampled_tokens"):
        check_equal_work({"a": [DONE], "b": [DONE | {"sampled_tokens": 240}]})


def test_a_step_whose_sampler_and_trainer_disagree_counts_for_nothing() -> None:
    check_exact([{"mismatch_max": 3e-5}])
    with pytest.raises(RivalError, match="disagree by up to 17 in a logprob"):
        check_exact([{"mismatch_max": 3e-5}, {"mismatch_max": 17.0}])


def test_our_bf16_is_held_against_the_rivals_fastest_precision() -> None:
    answers = {"sortie bf16": [DONE] * 2, "sortie fp32": [SLOW] * 2, "trl autocast": [SLOW] * 2}
    answers["trl fp32"] = [DONE | {"seconds": 10.0}] * 2
    lines = targets_of(SMALL, answers)
    assert [(line["name"], line["value"], line["met"]) for line in lines] == [
        ("1 x 8 x 32, bf16 against TRL's fastest (trl autocast): steps/s", 5.0, True),
        ("1 x 8 x 32, fp32: steps/s", 2.0, False),
    ]


def test_a_row_leaves_the_first_step_out_of_the_time_only() -> None:
    line = row(SMALL, "trl fp32", 300.0, [SLOW | {"peak_mib": 900.0}, DONE])
    assert (line["s/step"], line["peak MiB"], line["loaded MiB"]) == (1.0, 900, 300)
