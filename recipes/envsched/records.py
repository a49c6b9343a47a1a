"""One small JSON file per (scheduler, seed): what a run came to, and the digest of the settings it came from."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sortie.core.run_folder import RunFolder
from sortie.models import resolve
from sortie.orchestrator.config import Options, RunConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Held-out success at one moment of a run."""

    step: int
    rollouts: int
    """Rollouts made for training until then, replaced groups included."""
    train_s: float
    """Seconds of training steps until then; evaluations are not in it."""
    success: float
    n: int
    """Scored held-out rollouts."""
    environments: dict[str, tuple[float, int]]
    """Mean and number by environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One finished run."""

    digest: str
    """Of the settings, scheduler and seed included, and the weights that were trained."""
    setting: str
    """The same without scheduler and seed: results compare only where this is equal."""
    scheduler: str
    seed: int
    steps: int
    wall_s: float
    curve: list[Point]
    rollouts: list[int]
    """Per step."""
    informative: list[float]
    """Share of the groups rolled out whose rewards differed, per step."""
    replaced: list[int]
    """Groups the scheduler sent back, per step."""


def settle(config: RunConfig, scheduler: str, seed: int) -> RunConfig:
    """The configuration of one run."""
    own = config.scheduler if config.scheduler.name == scheduler else Options(name=scheduler)
    return config.model_copy(update={"scheduler": own, "seed": seed})


def digest_of(config: RunConfig) -> str:
    """16 hex digits of every setting and of the weights."""
    sums = [
        hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(resolve(config.model).glob("*.safetensors"))
    ]
    text = json.dumps([config.model_dump(mode="json", exclude={"model"}), sums], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def setting_of(config: RunConfig) -> str:
    """The digest that all schedulers and seeds of a comparison share."""
    return digest_of(config.model_copy(update={"scheduler": Options(name="any"), "seed": 0}))


def harvest(folder: RunFolder, config: RunConfig) -> Result:
    """The result of a finished run.

    Raises: ValueError if the run is not finished, had other settings, or a point of its curve is missing.
    """
    if RunConfig.from_toml(folder.config_text()) != config:
        raise ValueError(f"run {folder.name!r} was made with other settings")
    summary, metrics = folder.summary(), folder.metrics()
    if summary is None or len(metrics) != config.steps:
        raise ValueError(f"run {folder.name!r} is not finished")
    scores = {event["step"]: event for event in folder.events() if event["kind"] == "evaluation"}
    expected = {0, config.steps, *range(0, config.steps, config.eval.every or config.steps)}
    if set(scores) != expected:
        raise ValueError(f"run {folder.name!r} was evaluated at steps {sorted(scores)}, not {sorted(expected)}")
    curve = []
    for step in sorted(scores):
        done = metrics[:step]
        pooled = scores[step]["pooled"]
        curve.append(
            Point(
                step=step,
                rollouts=round(sum(line["rollouts"] for line in done)),
                train_s=round(sum(line["seconds"] for line in done), 2),
                success=pooled["mean"],
                n=pooled["n"],
                environments={env.name: _mean(scores[step][env.name]) for env in config.env},
            )
        )
    return Result(
        digest=digest_of(config),
        setting=setting_of(config),
        scheduler=config.scheduler.name,
        seed=config.seed,
        steps=config.steps,
        wall_s=round(summary["wall_s"], 1),
        curve=curve,
        rollouts=[round(line["rollouts"]) for line in metrics],
        informative=[round(line["informative"], 4) for line in metrics],
        replaced=[round(line["replaced"]) for line in metrics],
    )


def _mean(score: Mapping[str, Any]) -> tuple[float, int]:
    return round(score["mean"], 4), score["n"]


def path_of(results: Path, scheduler: str, seed: int) -> Path:
    """Where a result is kept."""
    return results / f"{scheduler}-{seed}.json"


def write(result: Result, results: Path) -> None:
    """Keep a result: whole or not at all."""
    path = path_of(results, result.scheduler, result.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part")
    half.write_text(json.dumps(asdict(result), indent=1) + "\n")
    os.replace(half, path)


def read(path: Path) -> Result:
    """A kept result."""
    data = json.loads(path.read_text())
    points = [
        Point(**{**point, "environments": {name: tuple(score) for name, score in point["environments"].items()}})
        for point in data["curve"]
    ]
    return Result(**{**data, "curve": points})


def read_all(results: Path) -> list[Result]:
    """Every kept result, in order of name."""
    return [read(path) for path in sorted(results.glob("*.json"))]
