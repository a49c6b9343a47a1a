"""Training on grouped trajectories: Sortie's local trainer against transformers + PEFT, SmolLM2-135M, this machine.

Equal on both sides: base model, rank-16 LoRA on all seven projections with the same initial weights, tokens, behaviour
logprobs, advantages, the clipped policy-gradient loss at the sampled positions alone, clipping of the gradient, AdamW.
Groups of 8 follow the agent pattern: 440-token rows (200 of prompt, three turns of 40 sampled, 60 of observation
between them), of which 120 train. Losses and gradient norms of the first step are compared, and the run fails if they
differ by more than rounding.

Not equal, on purpose: Sortie computes what siblings share once and takes its rows as it likes; PEFT takes the
micro-batch and precision that a trial in the same run found fastest (with and without gradient checkpointing where not
`--quick`). Both run eagerly, with all cores. Each contestant is a process of its own, idle while another works. Peak
memory is that of the fresh process after one pass over all rows; "added" leaves out what it held once the model was
loaded.

    python -m benchmarks.train [--quick] [--json]
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import arguments, publish
from benchmarks.rivals.trajectories import Pattern
from benchmarks.rivals.turns import Answer, quiet_machine, rounds, seconds, speedup, spread, target
from benchmarks.rivals.venv import RivalError
from benchmarks.rivals.worker import ROOT, Worker
from sortie import models

GROUP_SIZE = 8
DTYPES = {"bf16": "bfloat16", "fp32": "float32"}
"""Of Sortie's base weights."""
TEXTS = [ROOT / "docs" / "architecture.md", ROOT / "README.md"]
"""Where the tokens come from."""
SPEEDUP, MEMORY = 2.0, 0.5
"""Targets; 3 times the trajectories per second is the stretch."""
LOSS_TOLERANCE = {"fp32": 2e-5, "bf16": 1e-2}
"""How far the losses may be apart. The loss is a mean over tokens of ratio x advantage, each of the order of 0.25."""
NORM_TOLERANCE = {"fp32": 1e-3, "bf16": 0.1}
"""How far the gradient norms may be apart, relative."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much work one run does."""

    groups: int
    repeats: int
    precisions: tuple[str, ...]
    """Of PEFT, to try."""
    micro_batches: tuple[int, ...]
    """Rows, to try."""
    checkpointing: tuple[bool, ...]


FULL = Size(4, 2, ("bf16", "bf16-all", "autocast", "fp32"), (1, 2, 4, 8), (False, True))
QUICK = Size(1, 2, ("bf16", "fp32"), (2, 4), (False,))


@dataclass(frozen=True, slots=True)
class Files:
    """What all contestants read."""

    model: Path
    folder: Path

    @property
    def rows(self) -> Path:
        return self.folder / "rows.npz"

    @property
    def adapter(self) -> Path:
        return self.folder / "adapter.npz"

    def sortie(self, dtype: str) -> Worker:
        """Our trainer, with its default settings."""
        settings = {"model": str(self.model), "dtype": dtype, "scratch": str(self.folder)}
        return Worker(f"sortie {dtype}", "benchmarks.rivals.sortie_train", settings)

    def peft(self, precision: str) -> Worker:
        settings = {"model": str(self.model), "adapter": str(self.adapter), "precision": precision}
        return Worker(f"peft {precision}", "benchmarks.rivals.peft_train", settings)


@dataclass(frozen=True, slots=True)
class Trial:
    """One way to run PEFT, and how long one group took."""

    precision: str
    micro_batch: int
    checkpointing: bool
    seconds: float

    @property
    def name(self) -> str:
        return f"peft {self.precision} x{self.micro_batch}{' ckpt' if self.checkpointing else ''}"

    @property
    def order(self) -> dict[str, Any]:
        return {"micro_batch": self.micro_batch, "checkpointing": self.checkpointing}


def prepare(files: Files, groups: int) -> None:
    """Write rows and initial adapter."""
    with quiet_machine(), files.sortie("float32") as worker:
        worker.ask(
            do="prepare",
            groups=groups,
            group_size=GROUP_SIZE,
            text="\n".join(path.read_text(encoding="utf-8") for path in TEXTS),
            rows=str(files.rows),
            adapter=str(files.adapter),
        )


def try_out(files: Files, size: Size) -> list[Trial]:
    """Seconds that one group takes PEFT each way, each warmed up on as many rows as fit one micro-batch."""
    trials = []
    for precision in size.precisions:
        with files.peft(precision) as worker:
            for micro_batch in size.micro_batches:
                for checkpointing in size.checkpointing if micro_batch == max(size.micro_batches) else (False,):
                    order = {"path": str(files.rows), "micro_batch": micro_batch, "checkpointing": checkpointing}
                    with quiet_machine():
                        worker.ask(**order, rows=micro_batch)
                        took = worker.ask(**order, rows=GROUP_SIZE)["seconds"]
                    trials.append(Trial(precision, micro_batch, checkpointing, took))
    return trials


def fastest(trials: Sequence[Trial], *, full_precision: bool) -> Trial:
    """The best way to run PEFT; with `full_precision`, of those in float32 throughout."""
    return min((t for t in trials if not full_precision or t.precision == "fp32"), key=lambda t: t.seconds)


def check_equal_work(ours: Answer, theirs: Answer, precision: str) -> None:
    """Raises: RivalError if the first steps' losses, gradient norms or trained tokens differ by more than rounding."""
    loss = abs(ours["loss"] - theirs["loss"])
    norm = abs(ours["grad_norm"] / theirs["grad_norm"] - 1)
    if loss > LOSS_TOLERANCE[precision] or norm > NORM_TOLERANCE[precision]:
        raise RivalError(
            f"not the same work in {precision}: losses {ours['loss']:.6f} and {theirs['loss']:.6f}, "
            f"gradient norms {ours['grad_norm']:.6f} and {theirs['grad_norm']:.6f}"
        )
    if ours["trained_tokens"] != theirs["trained_tokens"]:
        raise RivalError(f"trained tokens differ: {ours['trained_tokens']} and {theirs['trained_tokens']}")


def row(name: str, loaded_mib: float, answers: Sequence[Answer], rows: int) -> dict[str, Any]:
    """What a contestant did, over the rounds that count; memory, loss and norm of its first pass."""
    rates = spread([rows / s for s in seconds(answers)])
    first = answers[0]
    return {
        "contestant": name,
        "trajectories/s": rates["value"],
        "low": rates["low"],
        "high": rates["high"],
        "row tokens/s": rates["value"] * len(Pattern().mask),
        "computed tokens": first["computed_tokens"],
        "peak MiB": round(first["peak_mib"]),
        "added MiB": round(first["peak_mib"] - loaded_mib),
        "loss": round(first["loss"], 7),
        "grad norm": round(first["grad_norm"], 5),
    }


def compare(
    label: str, ours: str, theirs: str, answers: Mapping[str, Sequence[Answer]], rows: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The three targets of one pair."""
    by_name = {line["contestant"]: line for line in rows}
    lines = [target(f"{label}: trajectories/s", speedup(seconds(answers[ours]), seconds(answers[theirs])), SPEEDUP)]
    for what in ("peak", "added"):
        share = by_name[ours][f"{what} MiB"] / by_name[theirs][f"{what} MiB"]
        value = {"value": share, "low": share, "high": share}
        lines.append(target(f"{label}: {what} memory", value, MEMORY, at_most=True))
    return lines


def duel(files: Files, short: str, best: Trial, size: Size) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows and targets of Sortie in one dtype against PEFT's best; no more than these two are in memory."""
    ours, theirs, count = f"sortie {short}", best.name, size.groups * GROUP_SIZE
    common = {"path": str(files.rows), "rows": count}
    with ExitStack() as stack:
        workers = {ours: stack.enter_context(files.sortie(DTYPES[short]))}
        workers[theirs] = stack.enter_context(files.peft(best.precision))
        answers = rounds(workers, {ours: {"do": "step"} | common, theirs: best.order | common}, size.repeats)
        rows = [row(name, worker.ready["loaded_mib"], answers[name], count) for name, worker in workers.items()]
    check_equal_work(answers[ours][0], answers[theirs][0], short)
    label = "bf16 against PEFT's fastest" if short == "bf16" else "fp32 against PEFT in fp32"
    return rows, compare(label, ours, theirs, answers, rows)


def measure(files: Files, size: Size) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows and targets."""
    prepare(files, size.groups)
    trials = try_out(files, size)
    rows, targets = duel(files, "bf16", fastest(trials, full_precision=False), size)
    more_rows, more_targets = duel(files, "fp32", fastest(trials, full_precision=True), size)
    tried = [{"contestant": f"trial: {t.name}", "trajectories/s": GROUP_SIZE / t.seconds} for t in trials]
    return rows + more_rows + [dict.fromkeys(rows[0], "") | line for line in tried], targets + more_targets


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__ or "")
    model = models.resolve("smollm2-135m")
    with tempfile.TemporaryDirectory() as folder:
        rows, targets = measure(Files(model, Path(folder)), QUICK if options.quick else FULL)
    publish("train", rows, targets, as_json=options.json)


if __name__ == "__main__":
    main()
