"""One log file per environment: every failed attempt, written as it happens.

The first failure of a kind comes with its traceback, the later ones as one line each. A file is opened for each entry,
so that a killed run loses none.
"""

from __future__ import annotations

import re
import time
import traceback
from pathlib import Path

from sortie.core.errors import BoundaryError
from sortie.core.files import encode, explained
from sortie.core.trajectory import Trajectory


def log_name(env: str) -> str:
    """File name of an environment's log, whatever characters its name has."""
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', env)}.log"


class EnvLogs:
    """Writes `FOLDER/ENV.log`; without a folder it writes nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._seen: set[tuple[str, str, str]] = set()

    def failed(self, trajectory: Trajectory, error: Exception) -> bool:
        """Record a failed attempt; whether it is the first of its environment, boundary and cause.

        Raises: UsageError if the file cannot be written.
        """
        boundary = error.boundary if isinstance(error, BoundaryError) else BoundaryError.boundary
        kind = (trajectory.env, boundary, type(error.__cause__ or error).__name__)
        first = kind not in self._seen
        self._seen.add(kind)
        if self.folder is not None:
            self._write(trajectory, error, boundary, first)
        return first

    def path(self, env: str) -> Path | None:
        """Where an environment's entries go."""
        return None if self.folder is None else self.folder / log_name(env)

    def _write(self, trajectory: Trajectory, error: Exception, boundary: str, first: bool) -> None:
        path = self.path(trajectory.env)
        assert path is not None
        at = time.strftime("%Y-%m-%d %H:%M:%S")
        text = f"{at} {trajectory.id} attempt {trajectory.attempts} {boundary}: {' '.join(str(error).split())}\n"
        if first:
            text += "".join(f"    {line}\n" for line in "".join(traceback.format_exception(error)).splitlines())
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(encode(text))
