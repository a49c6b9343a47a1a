from __future__ import annotations

import pytest

from benchmarks.rivals.trajectories import Pattern
from benchmarks.rivals.venv import RivalError
from benchmarks.train import Trial, check_equal_work, compare, fastest, row

FIRST = {
    "seconds": 9.0,
    "loss": 0.01,
    "grad_norm": 0.1,
    "trained_tokens": 960,
    "computed_tokens": 100,
    "peak_mib": 900.0,
}
TRIALS = [Trial("bf16", 4, False, 6.0), Trial("bf16", 8, True, 5.0), Trial("fp32", 2, False, 9.0)]


def test_the_fastest_trial_is_the_rival_and_fp32_has_one_of_its_own() -> None:
    assert fastest(TRIALS, full_precision=False).name == "peft bf16 x8 ckpt"
    assert fastest(TRIALS, full_precision=True).name == "peft fp32 x2"


@pytest.mark.parametrize(
    "change", [{"loss": 0.011}, {"grad_norm": 0.11}, {"trained_tokens": 959}], ids=lambda change: next(iter(change))
)
def test_work_that_is_not_the_same_ends_the_run(change: dict[str, float]) -> None:
    check_equal_work(FIRST, FIRST, "fp32")
    with pytest.raises(RivalError):
        check_equal_work(FIRST | change, FIRST, "fp32")


def test_a_row_leaves_the_warm_up_out_of_the_rate_and_takes_its_memory() -> None:
    line = row("sortie", 500.0, [FIRST, FIRST | {"seconds": 2.0, "peak_mib": 999.0}], rows=8)
    assert line["trajectories/s"] == 4.0
    assert line["row tokens/s"] == 4.0 * len(Pattern().mask)
    assert (line["peak MiB"], line["added MiB"]) == (900, 400)


def test_targets_are_speed_and_both_memories() -> None:
    answers = {"a": [FIRST, FIRST | {"seconds": 1.0}], "b": [FIRST | {"peak_mib": 1800.0}, FIRST | {"seconds": 2.5}]}
    rows = [row("a", 500.0, answers["a"], 8), row("b", 500.0, answers["b"], 8)]
    values = {line["name"]: (round(line["value"], 3), line["met"]) for line in compare("x", "a", "b", answers, rows)}
    assert values == {"x: trajectories/s": (2.5, True), "x: peak memory": (0.5, True), "x: added memory": (0.308, True)}
