"""Rollouts of one run on disk: an index people can read, and token arrays that tools can load.

`index.jsonl` gets one line as each rollout ends. Its token arrays go first to `tokens-STEP.jsonl`, and when the step is
sealed to `tokens-STEP.parquet` (columns serial, node, token_ids, logprobs; one row per node), after which the JSONL is
removed. So a kill at any moment loses no rollout that has ended: an index line always has its tokens in one of the two.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from sortie.core.errors import UsageError
from sortie.core.files import Lines, explained, read_lines, write_bytes
from sortie.core.records import RolloutRecord, Tokens, from_line, to_line, tokens_of
from sortie.core.task import Task
from sortie.core.trajectory import Trajectory


class RolloutStore:
    """Adds and reads rollouts. One writer at a time, any number of readers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index = Lines(folder / "index.jsonl")
        self._journals: dict[int, Lines] = {}
        self._next: int | None = None

    def add(self, trajectory: Trajectory, task: Task, step: int, phase: str = "train") -> None:
        """Record a rollout that has ended.

        Raises: UsageError if it cannot be written.
        """
        if self._next is None:
            with explained(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
            self._next = 1 + max((line["serial"] for line in read_lines(self._index.path)), default=-1)
        serial = self._next
        # Tokens first: should we be killed in between, they are orphans that the next rollout of this serial replaces.
        journal = self._journals.setdefault(step, Lines(self._journal_path(step)))
        journal.append({"serial": serial, "tokens": tokens_of(trajectory)})
        head = {"serial": serial, "step": step, "phase": phase, "at": time.time()}
        self._index.append({**head, **to_line(trajectory, task)})
        self._next += 1

    def seal(self, step: int) -> None:
        """Move the token arrays of a step into its Parquet file; does nothing if there are none to move.

        Raises: UsageError if it cannot be written; the arrays then stay where they are.
        """
        journal = self._journal_path(step)
        if not journal.exists():
            return
        write_bytes(self._parquet_path(step), _to_parquet(self._tokens(step)))
        if step in self._journals:
            self._journals.pop(step).close()
        journal.unlink(missing_ok=True)

    def seal_all(self) -> None:
        """Seal every step that rollouts were added to, evaluations before and after training included."""
        for step in list(self._journals):
            self.seal(step)

    def read(self, step: int | None = None) -> Iterator[RolloutRecord]:
        """Rollouts in the order they ended, of one step or of all.

        Raises: UsageError if token arrays were removed.
        """
        loaded, arrays = -1, dict[int, Tokens]()
        for line in read_lines(self._index.path):
            at, serial = line["step"], line["serial"]
            if step is not None and at != step:
                continue
            if not line["nodes"]:  # it ended before its first node, and Parquet has rows for nodes only
                yield from_line(line, [])
                continue
            if at != loaded or serial not in arrays:
                loaded, arrays = at, self._tokens(at)
            if serial not in arrays:
                raise UsageError(f"{self._parquet_path(at)} lacks the tokens of rollout {line['id']!r}")
            yield from_line(line, arrays[serial])

    def outlines(self) -> Iterator[RolloutRecord]:
        """All rollouts in the order they ended, without their token arrays: `token_ids` is range(number of tokens)."""
        for line in read_lines(self._index.path):
            yield from_line(line, [(range(node["tokens"]), None) for node in line["nodes"]])

    def close(self) -> None:
        """Close the files; what is not sealed stays readable."""
        for lines in (self._index, *self._journals.values()):
            lines.close()
        self._journals.clear()

    def _tokens(self, step: int) -> dict[int, Tokens]:
        """Serial -> arrays, from both files; the later line of a serial wins."""
        # The journal first: whatever is sealed between our two looks is then seen twice, not missed.
        journal = {
            line["serial"]: [(ids, logprobs) for ids, logprobs in line["tokens"]]
            for line in read_lines(self._journal_path(step))
        }
        return {**_from_parquet(self._parquet_path(step)), **journal}

    def _journal_path(self, step: int) -> Path:
        return self.folder / f"tokens-{step:06d}.jsonl"

    def _parquet_path(self, step: int) -> Path:
        return self.folder / f"tokens-{step:06d}.parquet"


def _to_parquet(rollouts: dict[int, Tokens]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [(serial, i, *node) for serial, nodes in sorted(rollouts.items()) for i, node in enumerate(nodes)]
    schema = pa.schema(
        # Logprobs as doubles: what the sampler gave comes back exactly, in whatever precision it computed.
        [
            ("serial", pa.int64()),
            ("node", pa.int32()),
            ("token_ids", pa.list_(pa.int32())),
            ("logprobs", pa.list_(pa.float64())),
        ]
    )
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    buffer = BytesIO()
    pq.write_table(pa.table(columns, schema=schema), buffer, compression="zstd")
    return buffer.getvalue()


def _from_parquet(path: Path) -> dict[int, Tokens]:
    if not path.exists():
        return {}
    import pyarrow.parquet as pq

    out: dict[int, Tokens] = {}
    for row in pq.read_table(path).to_pylist():
        out.setdefault(row["serial"], []).append((row["token_ids"], row["logprobs"]))
    return out
