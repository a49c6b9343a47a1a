"""How an interrupted run goes on: nothing that was completed is lost, no task is skipped or trained twice.

A step is committed by the rename of its checkpoint folder; everything else that the next step depends on is written
just before, as `checkpoints/step-N.json`. Going on means: load the newest committed step, serve its policy under the
number it had, and take rollouts of the step that was cut short from the journal where that very policy drew them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sortie.core.errors import ConfigError, UsageError
from sortie.core.run_folder import RunFolder
from sortie.core.trajectory import Trajectory
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.evaluate import Score

if TYPE_CHECKING:
    from sortie.orchestrator.loop import Run

FIXED = ("model", "lora", "dtype", "renderer", "seed", "env")
"""Settings that a run cannot change on the way: what it has learned would mean something else."""


async def commit(run: Run, metrics: Mapping[str, Any]) -> None:
    """Make the step just done the one to go on from."""
    state = {
        "step": run.step,
        "metrics": dict(metrics),
        "groups": run.notes,
        "scheduler": run.scheduler.state_dict(),
        "visits": dict(run.book.visits),
        "quiet_steps": run.quiet_steps,
        "zero_steps": run.zero_steps,
        "before": None if run.before is None else {name: s.to_dict() for name, s in run.before.items()},
        "elapsed_s": run.elapsed_s,
        "step_seconds": run.step_seconds,
        "eval_seconds": run.eval_seconds,
    }
    run.folder.write_state(run.step, state)
    await run.client.save(f"step-{run.step}")


async def restore(run: Run) -> None:
    """Bring a freshly opened run to its newest committed step; without one, to its start.

    Raises: UsageError if the checkpoint is damaged.
    """
    step = run.folder.committed_step()
    if step > 0:
        state = run.folder.read_state(step)
        await run.client.load(run.folder.checkpoint_dir / f"step-{step}")
        run.scheduler.load_state_dict(state["scheduler"])
        run.book.visits.update(state["visits"])
        run.step, run.quiet_steps, run.zero_steps = step, state["quiet_steps"], state["zero_steps"]
        run.before = None if state["before"] is None else {k: Score(**v) for k, v in state["before"].items()}
        run.earlier_s, run.step_seconds = state["elapsed_s"], list(state["step_seconds"])
        run.eval_seconds = state["eval_seconds"]
        if step not in {line["step"] for line in run.folder.metrics()}:  # killed between commit and report
            run.folder.append_groups(step, state.get("groups", []))
            run.folder.append_metrics(state["metrics"])
    run.policy = await run.client.publish()


def journalled(run: Run, phase: str) -> dict[str, Trajectory]:
    """Rollouts of this phase that the journal already holds, drawn from the present policy; by rollout id."""
    step = run.step + (phase == "train")
    return {
        record.trajectory.id: record.trajectory
        for record in run.folder.trajectories(step)
        if record.phase == phase and record.trajectory.reward is not None and _drawn_from(record.trajectory, run)
    }


def _drawn_from(trajectory: Trajectory, run: Run) -> bool:
    versions = {n.version.digest for n in trajectory.nodes if n.kind == "sampled" and n.version is not None}
    return versions == {run.policy.digest}


def continued_config(folder: RunFolder, overrides: tuple[str, ...]) -> RunConfig:
    """The run's own settings, with explicit changes, which are recorded as an event.

    Raises: ConfigError if a change is not possible on the way; UsageError if there is nothing left to do.
    """
    text = folder.config_text()
    old = RunConfig.from_toml(text, source=str(folder.path / "config.toml"))
    new = RunConfig.from_toml(text, overrides, source="--set")
    before, after = old.model_dump(mode="json"), new.model_dump(mode="json")
    changed = {key: {"from": before[key], "to": after[key]} for key in before if before[key] != after[key]}
    fixed = [key for key in changed if key in FIXED]
    if fixed:
        raise ConfigError(f"{fixed[0]} cannot change while a run goes on; start a new run for that")
    done = folder.committed_step()
    if folder.summary() is not None and new.steps <= done:
        raise UsageError(f"run {folder.name!r} has finished its {done} steps; go on with --set steps={2 * done}")
    folder.append_event("resumed", step=done, changed=changed)
    return new
