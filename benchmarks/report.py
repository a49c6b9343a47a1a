"""What every benchmark shares: interleaved repeats, a table, one line of JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sortie.core.errors import SortieError

Row = Mapping[str, Any]


def arguments(description: str) -> argparse.Namespace:
    """`--quick` and `--json`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, at most 5 minutes")
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
    return parser.parse_args()


def command(main: Callable[[], None]) -> None:
    """Run a benchmark's main; what it raises on purpose is one line and exit code 1, Ctrl-C is exit code 130."""
    try:
        main()
    except SortieError as error:
        raise SystemExit(f"error: {error}") from None
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        raise SystemExit(130) from None


def unmeasured(name: str, wanted: float) -> Row:
    """A target that this run says nothing about."""
    return {"name": name, "value": None, "low": None, "high": None, "target": wanted, "met": None}


def interleaved(works: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each work, the works taking turns so that a slow minute of the machine hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(repeats):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}


def publish(name: str, rows: Sequence[Row], targets: Sequence[Row], *, as_json: bool) -> None:
    """Print the result in the shape that all benchmarks share."""
    if as_json:
        machine = {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count(), "os": platform.system()}
        print(json.dumps({"benchmark": name, "machine": machine, "rows": list(rows), "targets": list(targets)}))
        return
    columns = list(rows[0])
    cells = [columns, *([_cell(row[c]) for c in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    for target in targets:
        print(
            f"target {target['name']}: {_cell(target['value'])} against {_cell(target['target'])}, met: {target['met']}"
        )


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
