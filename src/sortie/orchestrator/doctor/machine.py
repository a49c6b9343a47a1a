"""The machine: cores, memory, disk, and how fast its torch is."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from sortie.orchestrator.doctor.check import Check

GB = 1e9
_SLOW_GFLOPS = 10.0
"""Below this the quickstart takes hours."""
_LITTLE_MEMORY = 2 * GB
_LITTLE_DISK = 1 * GB


def machine_checks(runs: Path, needed_bytes: float = 0.0, threads: int | None = None) -> list[Check]:
    """What there is, against `needed_bytes` of memory and what a run writes under `runs`."""
    return [_cores(threads), _memory(needed_bytes), _disk(runs), _torch(threads)]


def usable_cores() -> int:
    """Cores this process may use: its affinity, and the quota of its control group where it has one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _read("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():
        cores = min(cores, max(1, round(int(quota[0]) / int(quota[1]))))
    return cores


def free_memory() -> float | None:
    """Bytes that can be had without swapping, within the control group's limit; None: the system does not say."""
    lines = dict(line.split(":", 1) for line in _read("/proc/meminfo").splitlines() if ":" in line)
    found = lines.get("MemAvailable", "").split()
    if not found:
        return None
    free = int(found[0]) * 1024
    limit, used = _read("/sys/fs/cgroup/memory.max").strip(), _read("/sys/fs/cgroup/memory.current").strip()
    return float(min(free, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else free)


def _cores(threads: int | None) -> Check:
    cores = usable_cores()
    if threads is not None and threads > cores:
        finding = f"the run asks for {threads} threads on {cores} usable cores"
        return Check(name="cores", status="warn", finding=finding, remedy=f"set threads = {cores}, or leave it out")
    return Check(name="cores", status="ok", finding=f"{cores} usable of {os.cpu_count()}")


def _memory(needed: float) -> Check:
    free = free_memory()
    if free is None:
        return Check(name="memory", status="ok", finding="this system does not say how much is free")
    finding = f"{free / GB:.1f} GB free" + (f", about {needed / GB:.1f} GB needed" if needed else "")
    if free < needed:
        remedy = "lower trainer.pack_tokens or engine.kv_memory_mb, set trainer.remat = true, or dtype = 'bfloat16'"
        return Check(name="memory", status="fail", finding=finding, remedy=remedy)
    if free < _LITTLE_MEMORY:
        return Check(name="memory", status="warn", finding=finding, remedy="end what else runs here")
    return Check(name="memory", status="ok", finding=finding)


def _disk(runs: Path) -> Check:
    at = next((path for path in (runs, *runs.absolute().parents) if path.is_dir()), Path(tempfile.gettempdir()))
    free = shutil.disk_usage(at).free
    finding = f"{free / GB:.1f} GB free for {runs}/"
    if not os.access(at, os.W_OK):
        remedy = "choose another folder with --runs"
        return Check(name="disk", status="fail", finding=f"not allowed to write in {at}", remedy=remedy)
    if free < _LITTLE_DISK:
        remedy = "free some space, or choose another folder with --runs"
        return Check(name="disk", status="warn", finding=finding, remedy=remedy)
    return Check(name="disk", status="ok", finding=finding)


def _torch(threads: int | None) -> Check:
    from sortie.models.machine import torch_facts

    facts = torch_facts()
    finding = (
        f"torch {facts.version}, {threads or facts.threads} threads, {facts.capability}, "
        f"{facts.gflops:.0f} GFLOP/s measured in single precision, {facts.cuda or 'no CUDA device'}"
    )
    if facts.gflops < _SLOW_GFLOPS:
        remedy = "end what else runs here, or train a smaller model: the measured speed is that of a busy machine"
        return Check(name="torch", status="warn", finding=finding, remedy=remedy)
    return Check(name="torch", status="ok", finding=finding)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:  # another system, or not allowed: nothing is known
        return ""
