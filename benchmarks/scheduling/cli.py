"""The command line of the benchmark: `python -m benchmarks.scheduling --help`."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product

from benchmarks.report import publish
from benchmarks.scheduling import cache, table
from benchmarks.scheduling.ablations import ABLATIONS
from benchmarks.scheduling.runner import Curve, run
from benchmarks.scheduling.specs import SPECS
from benchmarks.scheduling.worlds import make
from sortie.scheduling import SCHEDULERS

Job = tuple[str, str, int, int]
"""World, label of the scheduler, seed, updates."""
EXTRA = {"oracle": "knows every p: simulation only", "regression": "the crude first model that placed the worlds"}


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Options; worlds and schedulers checked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scheduling", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print worlds and schedulers, and stop")
    parser.add_argument("--world", default="base", help="name, several by commas, or `all`")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0, help="seeds go up from here: for worlds nobody tuned on")
    parser.add_argument("--ablations", action="store_true", help="EnvSched with parts taken out as well")
    parser.add_argument(
        "--schedulers", default="", help="by commas, each NAME or NAME:OPTION=VALUE:...; all of them if not given"
    )
    parser.add_argument("--quick", action="store_true", help="4 seeds")
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
    parser.add_argument("--plot", metavar="PATH", help="draw the curves of the worlds into this file")
    parser.add_argument("--jobs", type=int, default=1, help="processes to spread runs over")
    parser.add_argument("--fresh", action="store_true", help="run anew what was run before")
    options = parser.parse_args(given)
    options.worlds = list(SPECS) if options.world == "all" else options.world.split(",")
    options.labels = options.schedulers.split(",") if options.schedulers else [*SCHEDULERS, *EXTRA]
    for name in options.worlds:
        if name not in SPECS:
            parser.error(f"no world {name!r}; choose from {', '.join(SPECS)}")
    for label in options.labels:
        if label.partition(":")[0] not in (*SCHEDULERS, *EXTRA):
            parser.error(f"no scheduler {label!r}; choose from {', '.join([*SCHEDULERS, *EXTRA])}")
    options.labels = list(
        dict.fromkeys(["uniform", *options.labels, *(ABLATIONS.values() if options.ablations else ())])
    )
    options.seeds = min(options.seeds, 4) if options.quick else options.seeds
    return options


def main(given: Sequence[str] | None = None) -> None:
    """Run what is missing, print every world's rows and targets."""
    options = arguments(given)
    if options.list:
        _print_names()
        return
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    called = {label: name for name, label in ABLATIONS.items()}
    jobs = [
        (world, label, seed, SPECS[world].steps)
        for world, seed, label in product(options.worlds, seeds, options.labels)
    ]
    done = run_all(jobs, processes=options.jobs, fresh=options.fresh)
    rows, targets = [], []
    for world in options.worlds:
        spec = SPECS[world]
        runs = {
            called.get(label, label): {seed: done[world, label, seed, spec.steps] for seed in seeds}
            for label in options.labels
        }
        rows += table.rows(spec, runs, spec.steps)
        targets += table.targets(spec, runs, spec.steps)
    publish("scheduling", [table.flat(row) for row in rows] if options.json else rows, targets, as_json=options.json)
    if options.plot:
        from benchmarks.scheduling.plot import draw

        draw(options.plot, {key: done[key] for key in jobs})


def run_all(jobs: Sequence[Job], *, processes: int = 1, fresh: bool = False) -> dict[Job, Curve]:
    """Every job's run, from the cache where it is there; progress on stderr."""
    places = {job: cache.place(*job) for job in jobs}
    kept = {} if fresh else {job: curve for job in jobs if (curve := cache.load(places[job])) is not None}
    missing = [job for job in jobs if job not in kept]
    print(f"{len(kept)} runs kept from before, {len(missing)} to do", file=sys.stderr)
    for i, (job, curve) in enumerate(_runs(missing, processes), start=1):
        cache.store(places[job], curve)
        kept[job] = curve
        print(
            f"\r{i}/{len(missing)} {job[0]} {job[1]} seed {job[2]}: {curve.score[-1]:.3f}\033[K",
            end="",
            file=sys.stderr,
        )
    print(file=sys.stderr)
    return kept


def one(job: Job) -> Curve:
    """Do one job."""
    world, label, seed, steps = job
    return run(make(world, seed), label, steps=steps)


def _runs(jobs: Sequence[Job], processes: int) -> Iterator[tuple[Job, Curve]]:
    if processes <= 1:
        yield from ((job, one(job)) for job in jobs)
        return
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(one, job): job for job in jobs}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def _print_names() -> None:
    for spec in SPECS.values():
        print(f"world      {spec.name:12} {spec.about}")
    for name in SCHEDULERS:
        print(f"scheduler  {name}")
    for name, about in EXTRA.items():
        print(f"scheduler  {name:12} {about}")
