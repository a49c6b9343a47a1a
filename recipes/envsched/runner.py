"""Train one run per (scheduler, seed) and keep its result; what was interrupted goes on, what is done is skipped.

    python recipes/envsched/runner.py --schedulers uniform,dapo,mopps,greso,bots,envsched --seeds 5 --jobs 2

Seeds come in order and every scheduler has its turn within a seed, so that what is there after a stop can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import records

from sortie.core.config import load
from sortie.core.errors import SortieError, UnknownName
from sortie.core.run_folder import RunFolder
from sortie.orchestrator.config import RunConfig
from sortie.scheduling import SCHEDULERS

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Job:
    """One run to be made."""

    config: RunConfig
    run_file: Path
    overrides: tuple[str, ...]
    runs: Path
    results: Path

    @property
    def name(self) -> str:
        """Of its run folder; other settings or weights have another."""
        return f"{self.config.scheduler.name}-{self.config.seed}-{records.digest_of(self.config)[:8]}"

    @property
    def done(self) -> bool:
        """Whether a result of these very settings is kept."""
        path = records.path_of(self.results, self.config.scheduler.name, self.config.seed)
        return path.exists() and records.read(path).digest == records.digest_of(self.config)

    def command(self) -> list[str] | None:
        """What to run: a start, a continuation, or nothing where the run has finished."""
        sortie = [sys.executable, "-c", "from sortie.cli.main import main; raise SystemExit(main())", "train"]
        folder = self.runs / self.name
        if (folder / "summary.json").exists():
            return None
        if (folder / "config.toml").exists():
            return [*sortie, "--resume", self.name, "--runs", str(self.runs)]
        shutil.rmtree(folder, ignore_errors=True)  # killed before its settings were written: nothing was done in it
        scheduler = {"name": self.config.scheduler.name, **self.config.scheduler.options}
        table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in scheduler.items())
        own = (f"scheduler={{{table}}}", f"seed={self.config.seed}")
        settings = [part for change in (*self.overrides, *own) for part in ("--set", change)]
        return [*sortie, str(self.run_file), *settings, "--runs", str(self.runs), "--name", self.name]


def plan(
    run_file: Path, schedulers: Sequence[str], seeds: Sequence[int], overrides: Sequence[str], runs: Path, results: Path
) -> list[Job]:
    """Every run of the comparison, seed by seed.

    Raises: UnknownName for a scheduler that there is not; ConfigError for settings that are wrong.
    """
    for name in schedulers:
        if name not in SCHEDULERS:
            raise UnknownName("scheduler", name, SCHEDULERS)
    base = load(RunConfig, run_file, tuple(overrides))
    return [
        Job(records.settle(base, name, seed), run_file, tuple(overrides), runs, results)
        for seed in seeds
        for name in schedulers
    ]


def run(job: Job, keep: bool) -> bool:
    """Make one run and keep its result; True if it is there at the end."""
    if job.done:
        print(f"{job.name}: there already", flush=True)
        return True
    command = job.command()
    if command is not None:
        print(f"{job.name}: {'goes on' if '--resume' in command else 'starts'}", flush=True)
        job.runs.mkdir(parents=True, exist_ok=True)
        log = job.runs / f"{job.name}.log"
        single = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        with log.open("a") as out:
            code = subprocess.run(command, stdout=out, stderr=out, env={**os.environ, **single}, check=False).returncode
        if code:
            print(f"{job.name}: failed with exit code {code}; see {log}", flush=True)
            return False
    try:
        result = records.harvest(RunFolder.open(job.name, job.runs), job.config)
    except ValueError as error:
        print(f"{job.name}: {error}", flush=True)
        return False
    records.write(result, job.results)
    if not keep:
        shutil.rmtree(job.runs / job.name)
        (job.runs / f"{job.name}.log").unlink(missing_ok=True)
    last = result.curve[-1]
    print(
        f"{job.name}: success {last.success:.3f} of {last.n}, {last.rollouts} rollouts, {result.wall_s:.0f} s",
        flush=True,
    )
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 1 if a run failed, 2 if it was asked for wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedulers", default="uniform,dapo,mopps,greso,bots,envsched", help="names, with commas")
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0 to this, exclusive")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, one core each")
    parser.add_argument("--run", type=Path, default=HERE / "run.toml", help="run file")
    parser.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="A.B=C", help="change a setting"
    )
    parser.add_argument("--runs", type=Path, default=Path("runs/envsched"), help="folder of runs in the making")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder of results")
    parser.add_argument("--keep", action="store_true", help="keep run folders whose result is written")
    given = parser.parse_args(arguments)
    try:
        jobs = plan(
            given.run, given.schedulers.split(","), range(given.seeds), given.overrides, given.runs, given.results
        )
    except SortieError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(max(given.jobs, 1)) as pool:
        made = list(pool.map(lambda job: run(job, given.keep), jobs))
    return 0 if all(made) else 1


if __name__ == "__main__":
    raise SystemExit(main())
