"""One full GRPO step (sample, score, train, publish): Sortie's training loop against TRL's GRPOTrainer.

Equal on both sides: SmolLM2-135M, single-turn prompts through the model's chat template, a reward function in Python,
group size, number of new tokens (full length is forced on both), temperature 1, rank-16 LoRA on all seven projections,
one inner iteration, no KL term, clipping of ratio and gradient, AdamW. Prompt, sampled and trained tokens of each step
are printed, and the run fails if they differ by more than 5%.

Not equal: Sortie's side is the loop of `sortie train` and also journals every rollout, writes a checkpoint each step
and checks its canaries, where TRL logs and saves nothing. Sortie trains on the sampler's own logprobs; TRL, with one
inner iteration, takes the ratio to be 1. TRL also runs with its best precision, which a trial in the same run finds.
The prompts are single-turn because TRL's tools need a chat template with tool calls, which SmolLM2's has not; so
nothing but the prompt is shared between siblings, the case that suits Sortie least.

    python -m benchmarks.grpo_step [--quick] [--json]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import arguments, publish
from benchmarks.rivals.turns import Answer, quiet_machine, rounds, seconds, speedup, spread, target
from benchmarks.rivals.venv import RivalError, venv
from benchmarks.rivals.worker import Worker
from sortie import models

TRL = ("trl==1.16.0", "peft==0.21.2", "transformers==5.24.0")
SPEEDUP = 4.0
TOLERANCE = 0.05
"""How far the work of two contestants may be apart."""
MISMATCH = 1e-3
"""How far logprobs of sampler and trainer may be apart in fp32."""
WORK = ("prompt_tokens", "sampled_tokens", "trained_tokens")
SORTIE = {"sortie bf16": "bfloat16", "sortie fp32": "float32"}
"""Our contestants and their dtype."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Size of one step."""

    prompts: int
    group_size: int
    new_tokens: int

    @property
    def name(self) -> str:
        return f"{self.prompts} x {self.group_size} x {self.new_tokens}"


SMALL, BIG = Setting(1, 8, 32), Setting(4, 8, 64)
FULL = {"repeats": 3, "settings": (SMALL, BIG), "precisions": ("bf16", "bf16-plain", "autocast", "fp32")}
QUICK = {"repeats": 3, "settings": (SMALL,), "precisions": ("bf16", "bf16-plain")}


@dataclass(frozen=True, slots=True)
class Bench:
    """One setting, and where its contestants read and write."""

    setting: Setting
    model: Path
    scratch: Path

    def sortie(self, name: str) -> Worker:
        own = {"dtype": SORTIE[name], "scratch": str(self.scratch), "name": SORTIE[name]}
        return Worker(name, "benchmarks.rivals.sortie_grpo", self._shared | own)

    def trl(self, precision: str) -> Worker:
        own = {"precision": precision, "scratch": str(self.scratch / "trl")}
        return Worker(f"trl {precision}", "benchmarks.rivals.trl_grpo", self._shared | own, python=venv("trl", TRL))

    @property
    def _shared(self) -> dict[str, Any]:
        return {**asdict(self.setting), "model": str(self.model)}

    def fastest_precision(self, precisions: Sequence[str]) -> str:
        """The precision in which TRL is fastest: each alone, the quicker of two steps after one to warm up."""
        took = {}
        for precision in precisions:
            with quiet_machine(), self.trl(precision) as worker:
                took[precision] = min(seconds([worker.ask(do="step") for _ in range(3)]))
        print("trial, s/step:", {name: round(s, 2) for name, s in took.items()}, file=sys.stderr)
        return min(took, key=lambda name: took[name])


def check_equal_work(answers: Mapping[str, Sequence[Answer]]) -> None:
    """Raises: RivalError if prompt, sampled or trained tokens of any step differ by more than 5%."""
    for what in WORK:
        counts = {name: answer[what] for name, given in answers.items() for answer in given}
        if max(counts.values()) > (1 + TOLERANCE) * min(counts.values()):
            raise RivalError(f"not the same work: {what} are {counts}")


def check_exact(answers: Sequence[Answer]) -> None:
    """Raises: RivalError if engine and trainer of our fp32 side do not give the same logprobs: a step that is fast and
    wrong counts for nothing."""
    worst = max(answer["mismatch_max"] for answer in answers)
    if worst > MISMATCH:
        raise RivalError(
            f"sampler and trainer disagree by up to {worst:.2g} in a logprob in fp32, more than {MISMATCH}"
        )


def row(setting: Setting, name: str, loaded_mib: float, answers: Sequence[Answer]) -> dict[str, Any]:
    """A contestant's steps, the first one left out; memory includes it."""
    took, last = spread(seconds(answers)), answers[-1]
    return {
        "setting": setting.name,
        "contestant": name,
        "s/step": took["value"],
        "low": took["low"],
        "high": took["high"],
        "rollout s": last.get("rollout_s", ""),
        "train s": last.get("train_s", ""),
        "ratio": last.get("ratio", ""),
        **{what.replace("_", " "): last[what] for what in WORK},
        "peak MiB": round(max(answer["peak_mib"] for answer in answers)),
        "loaded MiB": round(loaded_mib),
    }


def targets_of(setting: Setting, answers: Mapping[str, Sequence[Answer]]) -> list[dict[str, Any]]:
    """bf16 against TRL's fastest, fp32 against TRL in fp32."""
    rivals = [name for name in answers if name not in SORTIE]
    best = min(rivals, key=lambda name: spread(seconds(answers[name]))["value"])
    pairs = {f"bf16 against TRL's fastest ({best})": ("sortie bf16", best), "fp32": ("sortie fp32", "trl fp32")}
    return [
        target(f"{setting.name}, {label}: steps/s", speedup(seconds(answers[ours]), seconds(answers[theirs])), SPEEDUP)
        for label, (ours, theirs) in pairs.items()
    ]


def both(ours: Worker, theirs: Worker, repeats: int) -> tuple[dict[str, float], dict[str, list[Answer]]]:
    """Memory once loaded and the answers of two contestants, which take turns."""
    with ExitStack() as stack:
        with quiet_machine():
            workers = {worker.name: stack.enter_context(worker) for worker in (ours, theirs)}
        answers = rounds(workers, {name: {"do": "step"} for name in workers}, repeats)
        return {name: worker.ready["loaded_mib"] for name, worker in workers.items()}, answers


def measure(
    setting: Setting, size: Mapping[str, Any], model: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows and targets of one setting."""
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(setting, model, Path(scratch))
        best = bench.fastest_precision(size["precisions"])
        answers, loaded = {}, {}
        # Two at a time: all four together need more memory than a 24 GiB machine has.
        for ours, theirs in zip(SORTIE, (best, "fp32"), strict=True):
            made, taken = both(bench.sortie(ours), bench.trl(theirs), size["repeats"])
            loaded |= made
            # Where fp32 is TRL's fastest, its second turn is the one beside our fp32.
            answers |= taken
        check_equal_work(answers)
        check_exact(answers["sortie fp32"])
        rows = [row(setting, name, loaded[name], given) for name, given in answers.items()]
    return rows, targets_of(setting, answers)


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__ or "")
    model = models.resolve("smollm2-135m")
    size = QUICK if options.quick else FULL
    rows, targets = [], []
    for setting in size["settings"]:
        more_rows, more_targets = measure(setting, size, model)
        rows += more_rows
        targets += more_targets
    publish("grpo_step", rows, targets, as_json=options.json)


if __name__ == "__main__":
    main()
