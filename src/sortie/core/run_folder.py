"""The folder of one run: `runs/NAME/`.

    config.toml          every setting, defaults included
    metrics.jsonl        one line per training step
    groups.jsonl         one line per training step: what was expected of each group, and what it brought
    events.jsonl         what happened besides: `created`, each `evaluation`, each `warning`
    rollouts/            every rollout that ended (see rollout_store)
    checkpoints/         adapters with optimiser state, and what else a step is resumed from
    logs/                one file per environment that failed, with tracebacks
    summary.json         the result; there once the run has finished
    learning_curve.png

Everything may be read while the run goes on. The process that trains holds `.lock`, so that a run that was killed is
told from one that is still going.
"""

from __future__ import annotations

import json
import shutil
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from sortie.core.errors import UnknownName, UsageError
from sortie.core.files import Lines, explained, read_lines, to_json, write_text
from sortie.core.records import RolloutRecord
from sortie.core.rollout_store import RolloutStore
from sortie.core.run_names import claim
from sortie.core.task import Task
from sortie.core.trajectory import Trajectory

if TYPE_CHECKING:
    from filelock import FileLock

Status = Literal["running", "finished", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """One line of `sortie runs list`."""

    name: str
    path: Path
    started: float
    """Seconds since the epoch."""
    status: Status
    """`interrupted`: no process trains it, and it has no summary."""
    steps: int
    """Steps done."""
    model: str
    before: float | None
    """Held-out mean over all environments, untrained; None: not measured."""
    after: float | None

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"path": str(self.path)}


class RunFolder:
    """Writes and reads one run's records. Every write may raise UsageError: disk full, or not allowed there."""

    def __init__(self, path: Path) -> None:
        """Use `create` or `open`."""
        self.path = path
        self._metrics = Lines(path / "metrics.jsonl")
        self._groups = Lines(path / "groups.jsonl")
        self._events = Lines(path / "events.jsonl")
        self._rollouts = RolloutStore(path / "rollouts")
        self._lock: FileLock | None = None

    @classmethod
    def create(cls, runs: Path, name: str | None = None, *, stem: str = "run") -> Self:
        """Make a new run folder and lock it until `close` or the end of the process; without a name, `STEM-1` and up.

        Raises: UsageError if the name is taken or cannot be a folder's, or the folder cannot be made.
        """
        run = cls(claim(runs, name, stem))
        run._hold()
        run.append_event("created")
        return run

    @classmethod
    def open(cls, path_or_name: str | Path, runs: Path = Path("runs")) -> Self:
        """Open a run by its folder, or by its name under `runs`.

        Raises: UnknownName, listing the runs there are.
        """
        for path in (Path(path_or_name), runs / path_or_name):
            if _is_run(path):
                return cls(path)
        raise UnknownName(f"run in {runs}/", str(path_or_name), [path.name for path in _run_paths(runs)])

    @classmethod
    def resume(cls, path_or_name: str | Path, runs: Path = Path("runs")) -> Self:
        """Open a run to go on with it, locked until `close` or the end of the process.

        Raises: UnknownName if there is no such run; UsageError if another process is running it.
        """
        run = cls.open(path_or_name, runs)
        if run._is_held():
            raise UsageError(f"run {run.name!r} is being trained by another process; stop that one first")
        run._hold()
        for half in run.checkpoint_dir.glob(".*"):  # what a kill left in the making
            shutil.rmtree(half, ignore_errors=True)
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *exc: object) -> None:
        try:
            if error is None:
                self._rollouts.seal_all()
        finally:
            self.close()

    def close(self) -> None:
        """Close the files and give up the lock."""
        for lines in (self._metrics, self._groups, self._events, self._rollouts):
            lines.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.name

    @property
    def checkpoint_dir(self) -> Path:
        """Where checkpoints go; made on first use."""
        path = self.path / "checkpoints"
        with explained(path):
            path.mkdir(exist_ok=True)
        return path

    def write_state(self, step: int, state: Mapping[str, Any]) -> None:
        """Keep what the step after `step` depends on, besides the weights."""
        write_text(self.checkpoint_dir / f"step-{step}.json", to_json(state))

    def read_state(self, step: int) -> dict[str, Any]:
        """What `write_state` kept.

        Raises: UsageError if it is missing or damaged.
        """
        path = self.checkpoint_dir / f"step-{step}.json"
        try:
            return dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read {path}: {error}") from None

    def committed_step(self) -> int:
        """The newest step whose checkpoint and state are both there; 0: none yet."""
        steps = [int(path.name.removeprefix("step-")) for path in self.checkpoint_dir.glob("step-*") if path.is_dir()]
        return max((step for step in steps if (self.checkpoint_dir / f"step-{step}.json").exists()), default=0)

    @property
    def curve_path(self) -> Path:
        """Where the plot goes."""
        return self.path / "learning_curve.png"

    def write_config(self, text: str) -> None:
        """Keep the resolved run file."""
        write_text(self.path / "config.toml", text)

    def config_text(self) -> str:
        """The resolved run file.

        Raises: UsageError if there is none.
        """
        try:
            return (self.path / "config.toml").read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot read {self.path / 'config.toml'}: {error.strerror or error}") from None

    def append_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Add one step's line; `at` is added."""
        self._metrics.append({**metrics, "at": time.time()})

    def append_groups(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Add what a step expected of its groups and what they brought."""
        self._groups.append({"step": step, "groups": list(groups)})

    def append_event(self, kind: str, **fields: Any) -> None:
        """Add one event."""
        self._events.append({"kind": kind, "at": time.time(), **fields})

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Keep the result: the run has finished."""
        write_text(self.path / "summary.json", to_json(summary, indent=2) + "\n")

    def add_rollout(self, trajectory: Trajectory, task: Task, step: int, phase: str = "train") -> None:
        """Journal a rollout that has ended, whole."""
        self._rollouts.add(trajectory, task, step, phase)

    def seal_step(self, step: int) -> None:
        """Pack the token arrays of a step, once all of its rollouts are in."""
        self._rollouts.seal(step)

    def trajectories(self, step: int | None = None) -> Iterator[RolloutRecord]:
        """Rollouts in the order they ended, of one step or of all."""
        return self._rollouts.read(step)

    def outlines(self) -> Iterator[RolloutRecord]:
        """The same without reading token arrays: `token_ids` is range(number of tokens), logprobs None."""
        return self._rollouts.outlines()

    def metrics(self) -> list[dict[str, Any]]:
        """One entry per step; a step that was done again counts once, as it came out last."""
        return list({line.get("step"): line for line in read_lines(self._metrics.path)}.values())

    def groups(self) -> dict[int, list[dict[str, Any]]]:
        """Step -> its groups as they were last written; empty for runs that kept no such record."""
        return {line["step"]: line["groups"] for line in read_lines(self._groups.path)}

    def events(self) -> list[dict[str, Any]]:
        """Events in order."""
        return list(read_lines(self._events.path))

    def summary(self) -> dict[str, Any] | None:
        """The result; None while there is none."""
        try:
            return dict(json.loads((self.path / "summary.json").read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None

    def info(self) -> RunInfo:
        """The run in short."""
        summary = self.summary() or {}
        created = next((event["at"] for event in self.events()), self.path.stat().st_mtime)
        return RunInfo(
            name=self.name,
            path=self.path,
            started=created,
            status="finished" if summary else "running" if self._is_held() else "interrupted",
            steps=len(self.metrics()),
            model=self._model(),
            before=_pooled(summary, "before"),
            after=_pooled(summary, "after"),
        )

    def _model(self) -> str:
        try:
            return str(tomllib.loads(self.config_text()).get("model", ""))
        except (UsageError, tomllib.TOMLDecodeError):  # killed before the config was written, or edited since
            return ""

    def _hold(self) -> None:
        from filelock import FileLock

        # The lock is the system's, on an open file: it ends with its process, however that ends.
        self._lock = FileLock(self.path / ".lock", timeout=0)
        with explained(self.path / ".lock"):
            self._lock.acquire()

    def _is_held(self) -> bool:
        from filelock import FileLock, Timeout

        if self._lock is not None:
            return True
        if not (self.path / ".lock").exists():
            return False
        try:
            with FileLock(self.path / ".lock", timeout=0):
                return False
        except Timeout:
            return True
        except OSError:  # a read-only place: no process of ours trains there
            return False


def list_runs(runs: Path = Path("runs")) -> list[RunInfo]:
    """Every run under `runs`, the oldest first."""
    return sorted((RunFolder(path).info() for path in _run_paths(runs)), key=lambda info: (info.started, info.name))


def _run_paths(runs: Path) -> list[Path]:
    return sorted(path for path in runs.iterdir() if _is_run(path)) if runs.is_dir() else []


def _is_run(path: Path) -> bool:
    return (path / "events.jsonl").is_file()


def _pooled(summary: Mapping[str, Any], when: str) -> float | None:
    score = ((summary.get(when) or {}).get("pooled") or {}).get("mean")
    return None if score is None else float(score)
