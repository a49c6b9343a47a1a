"""A run in a process of its own, to be killed: `python killable.py MODEL RUNS STEPS`. Goes on where it stopped."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from small_run import config, env

from sortie.orchestrator.loop import resume_run, train_run


def main(model: Path, runs: Path, steps: int) -> None:
    settings = config(model, steps=steps, scheduler={"name": "envsched"}, eval={"tasks": 4, "every": 5})
    envs = [env(), env(name="other")]
    if (runs / "r" / "config.toml").exists():
        asyncio.run(resume_run("r", envs=envs, runs=runs, say=lambda line: print(line, flush=True)))
    else:
        asyncio.run(train_run(settings, envs=envs, runs=runs, name="r", say=lambda line: print(line, flush=True)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
