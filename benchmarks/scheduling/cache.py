"""Finished runs as small files under .bench/scheduling, so that a benchmark that was cut short goes on where it was.

A file's name holds a hash of the code that made it: of the worlds, and of the scheduler with every module of
`sortie.scheduling` it imports. Change either, and the run is made anew.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from dataclasses import asdict
from functools import cache
from pathlib import Path

import sortie.scheduling
from benchmarks.scheduling.runner import Curve
from sortie.core.files import write_text
from sortie.scheduling import SCHEDULERS

ROOT = Path(__file__).parents[2] / ".bench" / "scheduling"
_HERE = Path(__file__).parent
_WORLD = ("specs.py", "surface.py", "worlds.py", "learner.py", "runner.py")
_OWN = {"oracle": "oracle.py", "regression": "reference.py"}


def place(world: str, label: str, seed: int, steps: int) -> Path:
    """File of one run."""
    folder = re.sub(r"[^\w.=-]+", "_", label)
    return ROOT / world / folder / f"seed{seed:03d}-steps{steps}-{version(label)}.json"


def load(path: Path) -> Curve | None:
    """The run kept there, if there is one."""
    return Curve(**json.loads(path.read_text())) if path.exists() else None


def store(path: Path, curve: Curve) -> None:
    """Keep a run; a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(asdict(curve)))


@cache
def version(label: str) -> str:
    """Hash of what makes a run of the scheduler called `label`."""
    name = label.partition(":")[0]
    files = {_HERE / file for file in _WORLD}
    if name in _OWN:
        files.add(_HERE / _OWN[name])
    elif name in SCHEDULERS:
        files |= _imported(f"sortie.scheduling.{SCHEDULERS[name].partition(':')[0]}")
    digest = hashlib.blake2b(digest_size=5)
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _imported(module: str) -> set[Path]:
    """Files of a module of sortie.scheduling and of all such modules that it imports, at any depth."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        file = _file(waiting.pop())
        if file is None or file in found:
            continue
        found.add(file)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sortie.scheduling."):
                waiting += [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
    return found


def _file(module: str) -> Path | None:
    """Where a module of sortie.scheduling lies; None for what is no module, as an imported class."""
    base = Path(sortie.scheduling.__file__).parent.joinpath(*module.split(".")[2:])
    return next((file for file in (base.with_suffix(".py"), base / "__init__.py") if file.exists()), None)
