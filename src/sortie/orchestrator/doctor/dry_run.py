"""One step of a run file, with tiny counts, in a folder that is thrown away."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from sortie.core.errors import SortieError
from sortie.core.run_folder import RunFolder
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.doctor.check import Check
from sortie.orchestrator.loop import train_run
from sortie.orchestrator.metrics import duration

NAME = "dry run"


def shortened(config: RunConfig) -> RunConfig:
    """The same run with one step of one group of two and one held-out task per environment; warnings do not end it."""
    rollouts = config.rollouts.model_copy(update={"groups": 1, "group_size": 2})
    evaluation = config.eval.model_copy(update={"tasks": 1, "every": None, "before": False})
    small = {"steps": 1, "rollouts": rollouts, "eval": evaluation, "tracker": None, "on_canary": "warn"}
    return config.model_copy(update=small)


async def dry_run_checks(config: RunConfig) -> list[Check]:
    """Whether a step goes through, what it warned of, and whether each environment could be scored."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sortie-doctor-") as folder:
        try:
            await train_run(shortened(config), runs=Path(folder), name="dry", say=lambda line: None)
        except SortieError as error:
            remedy = "put this right before you train"
            return [Check(name=NAME, status="fail", finding=" ".join(str(error).split()), remedy=remedy)]
        except Exception as error:  # noqa: BLE001  # whatever would end the real run is what the user came to hear of
            finding = f"{type(error).__name__}: {' '.join(str(error).split())}"
            remedy = "run `sortie train` on this file to see the traceback"
            return [Check(name=NAME, status="fail", finding=finding, remedy=remedy)]
        run = RunFolder.open("dry", Path(folder))
        return [_done(run, time.monotonic() - started), *_warnings(run)]


def _done(run: RunFolder, seconds: float) -> Check:
    records = list(run.trajectories())
    tokens = sum(record.trajectory.sampled_tokens for record in records)
    failed = [record.trajectory for record in records if record.trajectory.error]
    finding = (
        f"one step and {len(records)} rollouts ({tokens} tokens) went through in {duration(seconds)}, "
        f"{len({record.trajectory.env for record in records})} environments scored"
    )
    if failed:
        first = failed[0]
        finding += f"; {len(failed)} rollouts failed, the first at {first.boundary}: {first.error}"
        return Check(name=NAME, status="warn", finding=finding, remedy=f"look at environment {first.env!r} first")
    return Check(name=NAME, status="ok", finding=finding)


def _warnings(run: RunFolder) -> list[Check]:
    """What the step's own checks said."""
    said = [event["text"] for event in run.events() if event["kind"] == "warning"]
    return [Check(name=NAME, status="warn", finding=text, remedy="see the line itself") for text in said]
