"""The training loop, top to bottom. Open this file first.

A step chooses tasks, rolls out a group on each, turns groups into rows, takes one optimiser step and publishes the new
policy; the next step's rollouts are pinned to it. The loop is synchronous: every rollout is on-policy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sortie.core.errors import TrainingError
from sortie.core.group import Assignment, Group
from sortie.core.policy import PolicyVersion
from sortie.core.run_folder import RunFolder
from sortie.core.task import Task
from sortie.core.trajectory import StopReason, Trajectory
from sortie.envs import Env
from sortie.orchestrator.checks import (
    group_warnings,
    probe_warnings,
    rewarded,
    served_warnings,
    step_warnings,
    time_warnings,
    zero_warnings,
)
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.evaluate import POOLED, Score, evaluate_with
from sortie.orchestrator.first_token import first_token_noted
from sortie.orchestrator.group_notes import expectations, note_of
from sortie.orchestrator.metrics import duration, rollout_metrics, step_line
from sortie.orchestrator.probe import probe
from sortie.orchestrator.resume import commit, continued_config, journalled, restore
from sortie.orchestrator.session import LocalSession, open_local
from sortie.orchestrator.setup import build_envs, build_scheduler, check, preview
from sortie.orchestrator.summary import Summary
from sortie.orchestrator.tasks import TaskBook, result_of
from sortie.orchestrator.tracker import Tracker, open_tracker
from sortie.rollouts.engine import RolloutEngine
from sortie.scheduling import TaskScheduler
from sortie.training.batching import Batch, batch_of

if TYPE_CHECKING:
    from sortie.training.local import LocalTrainingClient

Say = Callable[[str], None]

REFILL_ROUNDS = 8
"""How often a step may replace groups that the scheduler sent back."""
UNPUBLISHED = PolicyVersion("policy", -1, "")
"""Stands where the policy will be until `restore` has published one."""

PROBE_EVERY = 5
"""Steps between two comparisons of the engine with a plain pass over the published weights."""


@dataclass(slots=True, kw_only=True)
class Run:
    """Everything a run holds while it goes on."""

    config: RunConfig
    folder: RunFolder
    say: Say
    session: LocalSession
    book: TaskBook
    scheduler: TaskScheduler
    rollouts: RolloutEngine
    client: LocalTrainingClient
    tracker: Tracker
    policy: PolicyVersion
    before: dict[str, Score] | None = None
    """Held-out success of the untrained model, once measured."""
    step: int = 0
    phase: str = "train"
    opened_at: float = field(default_factory=time.monotonic)
    earlier_s: float = 0.0
    """Seconds of this run in earlier processes, up to the step they committed last."""
    quiet_steps: int = 0
    """Steps in a row without an informative group."""
    zero_steps: int = 0
    """Steps in a row without a reward above 0."""
    step_seconds: list[float] = field(default_factory=list)
    eval_seconds: float = 0.0
    evaluated: int = 0
    """Rollouts that the evaluation in progress has behind it."""
    late: int = 0
    """Rollouts of the evaluation or step in progress that ran out of time."""
    notes: list[dict[str, Any]] = field(default_factory=list)
    """Of each group of the step in progress: what was expected of it and what it brought."""

    @property
    def elapsed_s(self) -> float:
        """Seconds of evaluation and training so far, interruptions not counted."""
        return self.earlier_s + time.monotonic() - self.opened_at


async def train_run(
    config: RunConfig,
    *,
    envs: Sequence[Env] | None = None,
    runs: Path = Path("runs"),
    name: str | None = None,
    say: Say = print,
) -> Summary:
    """Train as `config` says (on `envs`, where given, instead of its `[[env]]` tables) and leave a run folder.

    Raises: UsageError for what cannot be started; TrainingError if a step had no rollout that could be scored.
    """
    envs = await prepare(config, envs, say)
    with RunFolder.create(runs, name, stem="+".join(env.name for env in envs)) as folder:
        folder.write_config(config.to_toml())
        return await train_in(folder, config, envs, say)


async def resume_run(
    name: str | Path,
    *,
    envs: Sequence[Env] | None = None,
    runs: Path = Path("runs"),
    changes: Sequence[str] = (),
    say: Say = print,
) -> Summary:
    """Go on with a run from its last committed step; `changes` to its settings are dotted overrides, and recorded.

    Raises: UsageError if there is no such run, it is running, or nothing is left to do; ConfigError for a change that
    cannot be made on the way.
    """
    with RunFolder.resume(name, runs) as folder:
        config = continued_config(folder, tuple(changes))
        envs = await prepare(config, envs, say)
        folder.write_config(config.to_toml())
        say(f"going on with {folder.path} after step {folder.committed_step()}")
        return await train_in(folder, config, envs, say)


async def prepare(config: RunConfig, envs: Sequence[Env] | None, say: Say) -> list[Env]:
    """Build and check everything cheap, and say what the run will cost."""
    built = build_envs(config) if envs is None else list(envs)
    check(config, built)
    for line in await asyncio.to_thread(preview, config, built):
        say(line)
    return built


async def train_in(folder: RunFolder, config: RunConfig, envs: Sequence[Env], say: Say) -> Summary:
    """The run itself, from wherever its folder stands."""
    async with open_run(config, envs, folder, say) as run:
        await restore(run)
        if config.eval.before and run.before is None and run.step == 0:
            run.before = await evaluate_phase(run, "before")
        while run.step < config.steps:
            if evaluation_due(run):
                await evaluate_phase(run, f"step {run.step}")
            await train_step(run)
        after = await evaluate_phase(run, "after")
        return finish(run, after)


async def train_step(run: Run) -> None:
    """Choose, roll out, learn, publish; then say what happened."""
    started, run.late, run.notes = time.monotonic(), 0, []
    kept, replaced = await roll_out(run)
    rolled = time.monotonic()
    groups = kept + replaced
    metrics = rollout_metrics(groups) | {"replaced": float(len(replaced))}
    batch = batch_of(kept, run.config.loss)
    run.quiet_steps = 0 if batch.data else run.quiet_steps + 1
    run.zero_steps = 0 if rewarded(groups) else run.zero_steps + 1
    warnings = served_warnings(groups, run.policy) + zero_warnings(run.zero_steps)
    warnings += group_warnings(metrics, run.quiet_steps)
    warnings += time_warnings(run.late, int(metrics["rollouts"]), run.config.rollouts.limits)
    if batch.data:
        learned, more = await learn(run, batch)
        metrics |= learned
        warnings += more
    run.step += 1
    ended = time.monotonic()
    run.step_seconds.append(ended - started)
    metrics |= {
        "step": run.step,
        "policy": run.policy.number,
        "trainable_tokens": batch.trainable_tokens,
        "seconds": ended - started,
        "rollout_s": rolled - started,
        "train_s": ended - rolled,
        "tokens_per_s": metrics["sampled_tokens"] / (rolled - started),
        **{f"scheduler/{key}": value for key, value in run.scheduler.metrics().items()},
        **{f"engine/{key}": value for key, value in run.session.engine.metrics().items()},
    }
    await commit(run, metrics)
    report(run, metrics, warnings)


async def roll_out(run: Run) -> tuple[list[Group], list[Group]]:
    """A step's groups: those the scheduler keeps, and those it sent back for a replacement, which cost as much.

    Raises: TrainingError if nothing could be scored.
    """
    kept: list[Group] = []
    replaced: list[Group] = []
    wanted = run.config.rollouts.groups
    run.rollouts.finished = journalled(run, "train")
    for _ in range(REFILL_ROUNDS):
        assignments = run.scheduler.select(wanted, run.config.rollouts.group_size)
        expected = expectations(run.scheduler, assignments)
        groups = await asyncio.gather(*(run_assignment(run, assignment) for assignment in assignments))
        if not any(group.scored for group in kept + replaced + groups):
            raise TrainingError(f"no rollout of step {run.step + 1} could be scored: {first_error(groups)}")
        verdicts = run.scheduler.observe([result_of(group) for group in groups])
        for group, verdict, expectation in zip(groups, verdicts, expected, strict=True):
            (kept if verdict == "keep" else replaced).append(group)
            run.notes.append(note_of(group, verdict, expectation))
        wanted = verdicts.count("refill")
        if not wanted:
            break
    return kept, replaced


async def run_assignment(run: Run, assignment: Assignment) -> Group:
    """One group, drawn from the policy of this moment."""
    env, task, visit = run.book.visit(assignment)
    return await run.rollouts.run_group(
        env, task, assignment, visit=visit, policy=run.policy, temperature=run.config.rollouts.temperature
    )


async def learn(run: Run, batch: Batch) -> tuple[dict[str, float], list[str]]:
    """One optimiser step on the batch, and the policy it makes, published; its figures and what looks wrong."""
    c = run.config
    settings = {"clip_low": c.loss.clip_low, "clip_high": c.loss.clip_high, "temperature": c.rollouts.temperature}
    passed = await run.client.forward_backward(batch.data, "ppo", settings)
    moved = await run.client.optim_step(c.optim)
    previous, run.policy = run.policy, await run.client.publish()
    warnings = step_warnings(batch, passed, moved, run.policy, previous, c.dtype)
    if run.step % PROBE_EVERY == 0:
        warnings += probe_warnings(await probe(run.session, run.policy, run.client.lora), c.dtype)
    figures = {f"train/{key}": value for key, value in passed.metrics.items()}
    return {**figures, "loss": passed.loss, "grad_norm": moved.grad_norm, "update_norm": moved.update_norm}, warnings


def report(run: Run, metrics: dict[str, Any], warnings: Sequence[str]) -> None:
    """Put the step on the console and into the run folder."""
    run.folder.seal_step(run.step)
    run.folder.append_groups(run.step, run.notes)
    run.folder.append_metrics(metrics)
    run.tracker.log(metrics, step=run.step)
    left = (run.config.steps - run.step) * sum(run.step_seconds) / len(run.step_seconds) + run.eval_seconds
    run.say(step_line(run.step, run.config.steps, metrics, left))
    warn(run, warnings)
    if warnings and run.config.on_canary == "stop":
        raise TrainingError(f"stopped after step {run.step} by on_canary = 'stop': {warnings[0]}")


def warn(run: Run, lines: Sequence[str]) -> None:
    """Say it and put it on record."""
    for line in lines:
        run.folder.append_event("warning", step=run.step, text=line)
        run.say(f"  WARNING {line}")


def evaluation_due(run: Run) -> bool:
    """Whether `eval.every` asks for one here that is not on record yet: a run may have been cut short during it."""
    every = run.config.eval.every
    if not every or run.step == 0 or run.step % every:
        return False
    return not any(event["kind"] == "evaluation" and event["step"] == run.step for event in run.folder.events())


async def evaluate_phase(run: Run, phase: str) -> dict[str, Score]:
    """Success on held-out tasks under the present policy, recorded under `phase`."""
    started = time.monotonic()
    run.phase, run.evaluated, run.late, e = phase, 0, 0, run.config.eval
    run.rollouts.finished = journalled(run, phase)
    scores = await evaluate_with(
        run.rollouts, list(run.book.envs.values()), tasks=e.tasks, temperature=e.temperature, policy=run.policy
    )
    run.phase, run.eval_seconds = "train", time.monotonic() - started
    run.folder.append_event("evaluation", phase=phase, step=run.step, **{k: s.to_dict() for k, s in scores.items()})
    shown = "  ".join(f"{name} {score}" for name, score in scores.items())
    run.say(f"{phase}: {shown}  ({scores[POOLED].n} held-out rollouts, {duration(run.eval_seconds)})")
    warn(run, time_warnings(run.late, run.evaluated, run.config.rollouts.limits))
    return scores


@asynccontextmanager
async def open_run(config: RunConfig, envs: Sequence[Env], folder: RunFolder, say: Say) -> AsyncIterator[Run]:
    """Load the model, start engine and trainer, publish the untrained adapter; everything is let go on the way out."""
    from sortie.training.local import LocalTrainer

    async with open_local(
        config.model,
        dtype=config.dtype,
        device=config.device,
        threads=config.threads,
        renderer=config.renderer,
        engine=config.engine,
        tools=any(env.tools for env in envs),
    ) as session:
        trainer = LocalTrainer(session.decoder, config.trainer, folder=folder.checkpoint_dir)
        tracker = open_tracker(config.tracker, folder.name, config.model_dump(mode="json"))
        rollouts = RolloutEngine(
            session.client,
            session.renderer,
            limits=config.rollouts.limits,
            run_seed=config.seed,
            max_concurrent=config.rollouts.max_concurrent,
            on_finished=lambda trajectory, task: record(run, trajectory, task),
            log_folder=folder.path / "logs",
        )
        try:
            client = trainer.create_adapter(config.lora, seed=config.seed, on_publish=session.engine.publish)
            book = TaskBook(envs)
            run = Run(
                config=config,
                folder=folder,
                say=say,
                session=session,
                book=book,
                scheduler=build_scheduler(config, book),
                rollouts=rollouts,
                client=client,
                tracker=tracker,
                policy=UNPUBLISHED,
            )
            async with first_token_noted(session.engine, folder):
                yield run
        finally:
            tracker.finish()
            await rollouts.close()
            await asyncio.to_thread(trainer.close)


def record(run: Run, trajectory: Trajectory, task: Task) -> None:
    """Journal a rollout the moment it ends, and show that an evaluation moves."""
    run.folder.add_rollout(trajectory, task, run.step + (run.phase == "train"), run.phase)
    run.late += trajectory.stop_reason is StopReason.TIME
    if run.phase != "train":
        run.evaluated += 1
        total = sum(min(run.config.eval.tasks, len(env.tasks("heldout"))) for env in run.book.envs.values())
        if total >= 40 and run.evaluated % (total // 4) == 0 and run.evaluated < total:
            run.say(f"{run.phase}: {run.evaluated} of {total} held-out rollouts done")


def finish(run: Run, after: dict[str, Score]) -> Summary:
    """Write the summary and the learning curve."""
    from sortie.orchestrator.plot import plot_run

    summary = Summary.of(run.folder.path, run.config, run.before, after, run.elapsed_s, run.policy)
    run.folder.write_summary(summary.to_dict())
    plot_run(run.folder)
    run.say(f"wrote {run.folder.path} in {duration(run.elapsed_s)}: {', '.join(summary.lines())}")
    return summary


def first_error(groups: Sequence[Group]) -> str:
    """The first error among the members, with its boundary; what to look at when nothing worked."""
    failed = [t for group in groups for t in group.trajectories if t.error]
    return f"{failed[0].boundary}: {failed[0].error}" if failed else "no reward gave a number"
