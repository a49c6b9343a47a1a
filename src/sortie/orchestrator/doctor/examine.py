"""What is looked at, for a machine, a model or a run file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sortie.core.errors import UsageError
from sortie.envs import Env
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.doctor.check import Check
from sortie.orchestrator.doctor.dry_run import dry_run_checks
from sortie.orchestrator.doctor.fidelity import fidelity_checks
from sortie.orchestrator.doctor.isolation import isolation_checks
from sortie.orchestrator.doctor.machine import GB, machine_checks
from sortie.orchestrator.estimate import estimate
from sortie.orchestrator.setup import build_envs, check

Say = Callable[[str], None]


async def examine_machine(runs: Path) -> list[Check]:
    """The machine alone."""
    return [*machine_checks(runs), *await isolation_checks()]


async def examine_model(model: str, runs: Path) -> list[Check]:
    """The machine, and whether engine and trainer agree on a model."""
    config = RunConfig.model_validate({"model": model, "env": [{"name": "arithmetic"}]})
    return [*machine_checks(runs), *await fidelity_checks(config)]


async def examine_run_file(config: RunConfig, runs: Path, say: Say) -> list[Check]:
    """Everything a run of this file would need, ending with one step of it; after a failure the step is not tried."""
    say("looking at the run file and the machine")
    try:
        envs = build_envs(config)
        check(config, envs)
        needed = estimate(config, envs).memory + GB
    except UsageError as error:
        wrong = Check(name="run file", status="fail", finding=str(error), remedy="change the run file")
        return [wrong, *machine_checks(runs, threads=config.threads)]
    found = [Check(name="run file", status="ok", finding=_described(config, envs))]
    found += [*machine_checks(runs, needed, config.threads), *await isolation_checks(envs)]
    say(f"looking at {config.model}")
    found += await fidelity_checks(config)
    if any(one.status == "fail" for one in found):
        return found
    say("taking one small step")
    return [*found, *await dry_run_checks(config)]


def _described(config: RunConfig, envs: Sequence[Env]) -> str:
    tasks = ", ".join(
        f"{env.name} ({len(env.tasks('train'))} tasks, {len(env.tasks('heldout'))} held out)" for env in envs
    )
    return f"{config.steps} steps of {config.rollouts.groups} x {config.rollouts.group_size} rollouts on {tasks}"
