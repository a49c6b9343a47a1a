"""Run agents on tasks, many at once, and keep each one's trouble to itself.

Members of a group are scheduled one by one, so that a slow one holds one slot, not its group's. A failing member is a
record, its siblings go on. Only failures of the infrastructure are tried again, a bounded number of times, for that
rollout alone; none of them ever becomes a reward.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from sortie.context.limits import Limits
from sortie.context.run_context import RunContext
from sortie.context.seeds import RolloutKey
from sortie.context.thread import Sampling
from sortie.context.window import ContextWindow
from sortie.core.errors import BoundaryError
from sortie.core.group import Assignment, Group
from sortie.core.policy import PolicyVersion
from sortie.core.task import Task
from sortie.core.trajectory import StopReason, Trajectory
from sortie.inference.client import SamplingClient
from sortie.inference.renderers.base import Renderer
from sortie.resources.engine import ResourceEngine
from sortie.resources.lease import Leases
from sortie.rollouts.envlog import EnvLogs
from sortie.rollouts.rollout import EnvLike, attempt
from sortie.rollouts.watch import STALL_S, Watch

log = logging.getLogger("sortie")

RETRIES = 2
"""How often one rollout is tried again after failures of the infrastructure."""

OnFinished = Callable[[Trajectory, Task], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One rollout to be run."""

    env: EnvLike
    task: Task
    key: RolloutKey
    policy: PolicyVersion | None
    temperature: float


class RolloutEngine:
    """Turns assignments into groups of trajectories."""

    def __init__(
        self,
        client: SamplingClient,
        renderer: Renderer,
        resources: ResourceEngine | None = None,
        limits: Limits | None = None,
        run_seed: int = 0,
        max_concurrent: int = 64,
        on_finished: OnFinished | None = None,
        log_folder: Path | None = None,
        stall_s: float = STALL_S,
    ) -> None:
        """Without `resources` it makes an engine of its own, which `close` closes.

        `on_finished` hears of every rollout as it ends; what it raises ends the group: records must not be lost.
        `log_folder` gets one file per environment, with its failures. When no rollout ends for `stall_s` seconds, a
        warning names the oldest in flight and what they are at.
        """
        self.limits = limits or Limits()
        self.errors: Counter[tuple[str, str]] = Counter()
        """Failed attempts by (environment, boundary)."""
        self.shared: dict[str, Any] = {}
        """Every context's `shared`."""
        self.finished: dict[str, Trajectory] = {}
        """Rollouts done before an interruption, by id: each is handed out once in place of a new one."""
        self._client = client
        self._renderer = renderer
        self._own_resources = resources is None
        self._resources = ResourceEngine() if resources is None else resources
        self._run_seed = run_seed
        self._slots = asyncio.Semaphore(max_concurrent)
        self._on_finished = on_finished
        self.watch = Watch(stall_s)
        """What is in flight."""
        self.logs = EnvLogs(log_folder)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop the resources that this engine made; those it was given belong to the giver."""
        if self._own_resources:
            await self._resources.close()

    async def run_group(
        self,
        env: EnvLike,
        task: Task,
        assignment: Assignment,
        *,
        visit: int = 0,
        policy: PolicyVersion | None = None,
        temperature: float = 1.0,
    ) -> Group:
        """Every member of one assignment, in member order, all under the same policy; also when all of them failed."""
        try:
            async with asyncio.TaskGroup() as scope:
                members = [
                    scope.create_task(
                        self.run_one(env, task, member=i, visit=visit, policy=policy, temperature=temperature)
                    )
                    for i in range(assignment.rollouts)
                ]
        except ExceptionGroup as errors:  # members record their errors: this is `on_finished`
            raise errors.exceptions[0] from None
        return Group(assignment, [member.result() for member in members], policy)

    async def run_one(
        self,
        env: EnvLike,
        task: Task,
        *,
        member: int = 0,
        visit: int = 0,
        policy: PolicyVersion | None = None,
        temperature: float = 1.0,
    ) -> Trajectory:
        """One rollout, tried again after retryable errors. Errors are in the record; only cancellation is raised."""
        key = RolloutKey(run_seed=self._run_seed, task_key=task.key, visit=visit, member=member)
        if (done := self.finished.pop(key.id, None)) is not None:
            return done
        job = _Job(env=env, task=task, key=key, policy=policy, temperature=temperature)
        async with self._slots:
            for number in range(1, RETRIES + 2):
                trajectory, again = await self._attempt(job, number)
                if not again:
                    break
        if self._on_finished is not None:
            self._on_finished(trajectory, task)
        return trajectory

    async def _attempt(self, job: _Job, number: int) -> tuple[Trajectory, bool]:
        """The record of one attempt, and whether its error is worth another."""
        trajectory = Trajectory(
            id=job.key.id,
            task_key=job.key.task_key,
            env=job.env.name,
            member=job.key.member,
            attempts=number,
            stop_reason=StopReason.ERROR,  # until it has ended otherwise
        )
        started = time.monotonic()
        again = False
        try:
            with self.watch.following(trajectory):
                async with self._resources.lease(
                    *job.env.needs, holder=job.key.id, deadline_s=self.limits.lease_seconds, klass=job.env.name
                ) as leases:
                    await attempt(job.env, self._context(job, trajectory, leases))
        except Exception as error:  # noqa: BLE001  # whatever broke, it broke one rollout: it goes on record
            again = self._record(trajectory, error)
        trajectory.seconds = time.monotonic() - started
        return trajectory, again

    def _context(self, job: _Job, trajectory: Trajectory, leases: Leases) -> RunContext:
        env = job.env
        return RunContext(
            rollout_id=job.key.id,
            task=job.task,
            env_name=env.name,
            member=job.key.member,
            trajectory=trajectory,
            sampling=Sampling(
                client=self._client,
                renderer=self._renderer,
                key=job.key,
                policy=job.policy,
                temperature=job.temperature,
                klass=env.name,
            ),
            limits=self.limits,
            window=ContextWindow(self.limits),
            deadline=asyncio.get_running_loop().time() + self.limits.seconds,
            tools={tool.name: tool for tool in env.tools},
            leases=leases,
            respond=env.respond,
            system=env.system,
            examples=env.examples,
            shared=self.shared,
        )

    def _record(self, trajectory: Trajectory, error: Exception) -> bool:
        if isinstance(error, BoundaryError):
            text, boundary = str(error), error.boundary
        else:
            text, boundary = f"{type(error).__name__}: {error}", BoundaryError.boundary
        trajectory.error, trajectory.boundary = " ".join(text.split()), boundary
        self.errors[trajectory.env, boundary] += 1
        if self.logs.failed(trajectory, error):
            log.warning("rollout %s: %s (later ones of this kind are counted)", trajectory.id, error, exc_info=error)
        return isinstance(error, BoundaryError) and error.retryable
