"""What scheduling costs by the number of pairs: time of one select and observe, and memory.

    python -m benchmarks.scheduling.scale [--scheduler envsched] [--pairs 1000,1000000] [--quick] [--json]

Each size runs in a process of its own with one thread: 512 groups of 8 per update, one environment per thousand pairs
(at least 10), text templates as in the worlds, features of 20 patterns, a learner whose success depends on both. Bytes
per pair are what the process holds more of after building the scheduler and after all updates; records and their texts,
which the caller owns, are counted apart.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import publish
from benchmarks.scheduling.runner import options_of
from benchmarks.scheduling.surface import blurred, patterns_of, text_of
from benchmarks.scheduling.worlds import GROUP_SIZE, sigmoid
from sortie.scheduling import EnvironmentRecord, GroupResult, TaskRecord, build

GROUPS = 512
PATTERNS = 20
SIZES = (1_000, 10_000, 100_000, 1_000_000)
TARGET_MS = 100.0
"""Of select and observe at a million pairs, on one core."""
ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def measure(scheduler_name: str, pairs: int, updates: int) -> dict[str, Any]:
    """One size, in this process."""
    rng = np.random.default_rng(pairs)
    environments = max(10, pairs // 1000)
    surfaces = patterns_of(PATTERNS, rng)
    environment, pattern = rng.integers(environments, size=pairs), rng.integers(PATTERNS, size=pairs)
    effect = rng.normal(scale=2.4, size=environments)[environment] + rng.normal(scale=2.4, size=PATTERNS)[pattern]
    p = sigmoid(-3.0 - effect + rng.normal(size=pairs))
    before = resident_bytes()
    records = [
        TaskRecord(key=f"env{e}/{i}", environment=f"env{e}", text=text_of(surfaces[q], i))
        for i, (e, q) in enumerate(zip(environment.tolist(), pattern.tolist(), strict=True))
    ]
    row = {record.key: i for i, record in enumerate(records)}
    gc.collect()
    with_records = resident_bytes()
    started = time.perf_counter()
    name, _, rest = scheduler_name.partition(":")
    known = [EnvironmentRecord(name=f"env{e}") for e in range(environments)]
    scheduler = build(name, records, environments=known, **options_of(rest))
    build_s = time.perf_counter() - started
    selects, observes = [], []
    for version in range(updates):
        started = time.perf_counter()
        assignments = scheduler.select(GROUPS, GROUP_SIZE)
        selects.append(time.perf_counter() - started)
        results = [
            GroupResult(
                key=a.key,
                assignment=a.id,
                rewards=tuple((rng.random(a.rollouts) < p[row[a.key]]).astype(float).tolist()),
                features=blurred(surfaces[pattern[row[a.key]]].profile, 0.02, rng),
                version=version,
            )
            for a in assignments
        ]
        started = time.perf_counter()
        scheduler.observe(results)
        observes.append(time.perf_counter() - started)
    gc.collect()
    both = 1e3 * (np.array(selects) + np.array(observes))
    return {
        "scheduler": scheduler_name,
        "pairs": pairs,
        "environments": environments,
        "updates": updates,
        "select_ms": 1e3 * float(np.median(selects)),
        "observe_ms": 1e3 * float(np.median(observes)),
        "both_ms": float(np.median(both)),
        "both_p99_ms": float(np.percentile(both, 99)),
        "first_ms": float(both[0]),
        "build_s": build_s,
        "bytes_per_pair": (resident_bytes() - with_records) / pairs,
        "record_bytes_per_pair": (with_records - before) / pairs,
    }


def resident_bytes() -> int:
    """Memory this process holds, from /proc; 0 where there is none."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * 4096 if status.exists() else 0


def main(given: Sequence[str] | None = None) -> None:
    """Measure every size, each in a fresh process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scheduling.scale")
    parser.add_argument("--scheduler", default="envsched", help="by commas, each NAME or NAME:OPTION=VALUE:...")
    parser.add_argument("--pairs", default=",".join(map(str, SIZES)), help="sizes, by commas")
    parser.add_argument("--updates", type=int, default=100, help="of each size; the p99 is of these")
    parser.add_argument("--quick", action="store_true", help="20 updates")
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    updates = min(options.updates, 20) if options.quick else options.updates
    sizes = [(name, int(pairs)) for name in options.scheduler.split(",") for pairs in options.pairs.split(",")]
    if options.here:
        [(name, pairs)] = sizes
        print(json.dumps(measure(name, pairs, updates)))
        return
    rows = [_apart(name, pairs, updates) for name, pairs in sizes]
    targets = [
        {
            "name": f"{row['scheduler']}: median ms of select and observe at {row['pairs']} pairs",
            "value": row["both_ms"],
            "low": None,
            "high": row["both_p99_ms"],
            "target": TARGET_MS,
            "met": row["both_ms"] <= TARGET_MS and row["both_p99_ms"] <= TARGET_MS,
        }
        for row in rows
        if row["pairs"] >= 1_000_000
    ]
    publish("scheduling.scale", rows, targets, as_json=options.json)


def _apart(name: str, pairs: int, updates: int) -> dict[str, Any]:
    """`measure` in a process of its own."""
    asked = ["--scheduler", name, "--pairs", str(pairs), "--updates", str(updates), "--here"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scheduling.scale", *asked],
        env={**os.environ, **dict.fromkeys(ONE_THREAD, "1")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
