"""Runs are kept, and made anew when the code that made them changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scheduling import cache, cli
from benchmarks.scheduling.runner import Curve
from sortie.scheduling import SCHEDULERS


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "ROOT", tmp_path)


def test_a_run_is_kept(tmp_path: Path) -> None:
    path = cache.place("base", "envsched:prior.pair=2", 3, 150)
    assert cache.load(path) is None
    curve = Curve([0, 256], [0.0, 256.5], [0.1, 0.2], [0.0, 0.5], 0.25)
    cache.store(path, curve)
    assert cache.load(path) == curve
    assert path.is_relative_to(tmp_path)


def test_versions_follow_the_modules_a_scheduler_imports() -> None:
    files = cache._imported("sortie.scheduling.rivals.greso")
    names = {file.name for file in files}
    assert {"greso.py", "dapo.py", "base.py", "ledger.py", "keyed.py"} <= names
    assert "envsched.py" not in names
    assert "mopps.py" not in names
    assert len({cache.version(name) for name in (*SCHEDULERS, "oracle", "regression")}) == len(SCHEDULERS) + 2


def test_a_benchmark_that_was_cut_short_goes_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    done: list[cli.Job] = []

    def one(job: cli.Job) -> Curve:
        done.append(job)
        if len(done) == 3:
            raise KeyboardInterrupt
        return Curve([0, 256], [0.0, 256.0], [0.1, 0.2], [0.0, 0.5])

    monkeypatch.setattr(cli, "one", one)
    jobs = [("base", label, seed, 1) for label in ("uniform", "oracle") for seed in (0, 1)]
    with pytest.raises(KeyboardInterrupt):
        cli.run_all(jobs)
    assert cli.run_all(jobs).keys() == set(jobs)
    assert done == [*jobs[:3], *jobs[2:]]
    cli.run_all(jobs, fresh=True)
    assert done[-4:] == jobs
    assert "4 runs kept" not in capsys.readouterr().out, "progress goes to stderr"
