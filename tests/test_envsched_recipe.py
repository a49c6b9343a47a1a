"""The comparison in recipes/envsched: what is run, kept and concluded. Pain J1, J3."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from sortie.core.errors import UnknownName

RECIPE = Path(__file__).parent.parent / "recipes" / "envsched"
sys.path.insert(0, str(RECIPE))
import records  # noqa: E402
import report  # noqa: E402
import runner  # noqa: E402

sys.path.remove(str(RECIPE))
assert isinstance(records, ModuleType)


def result(
    scheduler: str,
    seed: int,
    curve: Sequence[float],
    *,
    per_step: int = 100,
    informative: float = 0.5,
    setting: str = "s",
) -> records.Result:
    """Evaluated after every step; a step takes 2 seconds."""
    return records.Result(
        digest=f"{scheduler}{seed}",
        setting=setting,
        scheduler=scheduler,
        seed=seed,
        steps=len(curve) - 1,
        wall_s=60.0,
        curve=[
            records.Point(
                step=i, rollouts=per_step * i, train_s=2.0 * i, success=y, n=270, environments={"arithmetic": (y, 270)}
            )
            for i, y in enumerate(curve)
        ],
        rollouts=[per_step] * (len(curve) - 1),
        informative=[informative] * (len(curve) - 1),
        replaced=[0] * (len(curve) - 1),
    )


def test_a_result_comes_back_as_it_was_kept_and_nothing_half_written_stays(tmp_path: Path) -> None:
    kept = result("uniform", 3, [0.1, 0.2])
    records.write(kept, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["uniform-3.json"]
    assert records.read_all(tmp_path) == [kept]


def test_every_scheduler_has_its_turn_within_a_seed() -> None:
    jobs = runner.plan(RECIPE / "run.toml", ["uniform", "dapo"], range(2), [], Path("runs"), Path("results"))
    assert [(job.config.scheduler.name, job.config.seed) for job in jobs] == [
        ("uniform", 0),
        ("dapo", 0),
        ("uniform", 1),
        ("dapo", 1),
    ]
    assert len({job.name for job in jobs}) == 4
    with pytest.raises(UnknownName, match="did you mean 'mopps'"):
        runner.plan(RECIPE / "run.toml", ["mops"], range(1), [], Path("runs"), Path("results"))


def job(tmp_path: Path, *overrides: str, scheduler: str = "dapo") -> runner.Job:
    return runner.plan(RECIPE / "run.toml", [scheduler], [1], overrides, tmp_path / "runs", tmp_path / "results")[0]


def test_what_is_done_is_skipped_while_its_settings_are_the_same(tmp_path: Path) -> None:
    first = job(tmp_path)
    assert not first.done
    kept = result("dapo", 1, [0.1, 0.2])
    records.write(kept, first.results)
    assert not first.done  # another digest
    records.write(records.Result(**{**vars_of(kept), "digest": records.digest_of(first.config)}), first.results)
    assert first.done
    assert not job(tmp_path, "optim.lr=3e-3").done
    assert not job(tmp_path, "scheduler.most=2.0", "scheduler.name=dapo").done


def vars_of(one: records.Result) -> dict[str, object]:
    return {name: getattr(one, name) for name in one.__slots__}


def test_a_run_starts_goes_on_or_is_only_harvested_by_what_its_folder_holds(tmp_path: Path) -> None:
    one = job(tmp_path, "scheduler.name=dapo", "scheduler.most=2.5")
    command = one.command()
    assert command is not None
    assert [*command[3:5], command[-2:]] == ["train", str(RECIPE / "run.toml"), ["--name", one.name]]
    assert 'scheduler={name = "dapo", most = 2.5}' in command
    assert "seed=1" in command
    folder = one.runs / one.name
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("")
    command = one.command()
    assert command is not None
    assert command[4:] == ["--resume", one.name, "--runs", str(one.runs)]
    (folder / "summary.json").write_text("{}")
    assert one.command() is None


def test_other_schedulers_do_not_inherit_the_run_files_scheduler_options() -> None:
    base = job(Path("x"), "scheduler.name=dapo", "scheduler.most=2.5").config
    assert base.scheduler.options == {"most": 2.5}
    assert records.settle(base, "mopps", 0).scheduler.options == {}
    assert records.setting_of(base) == records.setting_of(records.settle(base, "mopps", 7))


def test_the_run_file_has_eight_environments_or_more_a_curve_and_one_thread() -> None:
    config = job(Path("x")).config
    assert len(config.env) >= 8
    assert config.eval.every is not None
    assert config.threads == 1


@pytest.mark.slow
def test_a_run_that_was_cut_short_goes_on_and_its_result_has_the_whole_curve(tmp_path: Path) -> None:
    small = ("steps=4", "eval.every=2", "eval.tasks=2", "rollouts.groups=2", "rollouts.group_size=3")
    one = runner.plan(RECIPE / "run.toml", ["uniform"], [0], small, tmp_path / "runs", tmp_path / "results")[0]
    command = one.command()
    assert command is not None
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    committed = one.runs / one.name / "checkpoints" / "step-1"
    while process.poll() is None and not committed.exists():
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    command = one.command()
    assert command is not None
    assert "--resume" in command
    folders = ["--runs", str(one.runs), "--results", str(one.results)]
    changes = [part for change in small for part in ("--set", change)]
    for _ in range(2):  # the second time all is there
        assert runner.main(["--schedulers", "uniform", "--seeds", "1", *folders, *changes]) == 0
    (kept,) = records.read_all(one.results)
    assert [(point.step, point.rollouts) for point in kept.curve] == [(0, 0), (2, 12), (4, 24)]
    assert not list(one.runs.iterdir())


def test_means_have_students_intervals() -> None:
    """1, 2, 3: mean 2, deviation 1, t = 4.303 with 2 degrees of freedom."""
    assert report.mean_interval([1.0, 2.0, 3.0]) == pytest.approx((2, 2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5))
    assert math.isnan(report.mean_interval([1.0])[1])


def test_a_target_is_reached_where_the_mean_curve_first_crosses_it() -> None:
    """Means 0.1, 0.2, 0.4, 0.3: 0.3 halfway between steps 1 and 2; 0.1 at the start; 0.5 never."""
    curves = [result("a", 0, [0.0, 0.2, 0.5, 0.3]).curve, result("a", 1, [0.2, 0.2, 0.3, 0.3]).curve]
    assert report.reached(curves, "step", 0.3) == pytest.approx(1.5)
    assert report.reached(curves, "rollouts", 0.3) == pytest.approx(150)
    assert report.reached(curves, "step", 0.1) == 0
    assert report.reached(curves, "step", 0.5) == math.inf


def both(gain: float = 0.2) -> list[records.Result]:
    """Uniform goes from 0.1 to 0.3 in 4 steps of 100 rollouts; envsched is `gain` above from the second step on."""
    uniform = [0.1, 0.15, 0.2, 0.25, 0.3]
    ours = [0.1, 0.2, *[y + gain for y in uniform[2:]]]
    return [
        result(name, seed, [y + 0.01 * seed for y in curve])
        for seed in range(3)
        for name, curve in (("uniform", uniform), ("envsched", ours))
    ]


def test_a_scheduler_is_compared_with_uniform_seed_by_seed() -> None:
    """0.2 -> 0.4 between steps 1 and 2 crosses 0.3 at 1.5 of 4 steps; seeds differ alike in both, so no spread."""
    uniform, ours = report.compare(both())
    assert (uniform["scheduler"], ours["scheduler"]) == ("uniform", "envsched")
    assert ours["steps_ratio"] == pytest.approx((0.375, 0.375, 0.375))
    assert ours["over_uniform"] == pytest.approx((0.2, 0.2, 0.2))
    assert uniform["steps_ratio"][0] == pytest.approx(1.0)
    assert ours["wasted"][0] == pytest.approx(0.5)


def test_matched_rollouts_stop_a_scheduler_that_makes_more_of_them_early() -> None:
    """200 a step: after uniform's 200 rollouts it has made one step of two."""
    dapo = result("dapo", 0, [0.1, 0.2, 0.3], per_step=200)
    _, row = report.compare([result("uniform", 0, [0.1, 0.2, 0.25]), dapo])
    assert row["matched_rollouts"][0] == pytest.approx(0.2)
    assert row["over_uniform"][0] == pytest.approx(-0.05)
    assert row["matched_seconds"][0] == pytest.approx(0.3)


def test_rollouts_without_variance_are_wasted_by_the_number_made() -> None:
    """Half of 300 and all of 100 rollouts: 250 of 400."""
    one = result("uniform", 0, [0.1, 0.2, 0.3])
    uneven = records.Result(**{**vars_of(one), "rollouts": [300, 100], "informative": [0.5, 0.0]})
    assert report.compare([uneven])[0]["wasted"][0] == pytest.approx(250 / 400)


@pytest.mark.parametrize(("gain", "met"), [(0.2, [True, True]), (-0.1, [False, False])])
def test_the_issues_targets_are_judged(gain: float, met: list[bool]) -> None:
    assert [target["met"] for target in report.targets_of(report.compare(both(gain)))] == met


def test_one_seed_is_no_measurement() -> None:
    assert [target["met"] for target in report.targets_of(report.compare(both()[:2]))] == [None, None]


def test_the_report_prints_a_table_or_strict_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for one in both(-0.1):
        records.write(one, tmp_path)
    assert report.main(["--results", str(tmp_path)]) == 0
    assert "never [never, never]" in capsys.readouterr().out
    report.main(["--results", str(tmp_path), "--json"])
    told = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert [row["scheduler"] for row in told["rows"]] == ["uniform", "envsched"]
    assert {"name", "value", "low", "high", "target", "met"} == set(told["targets"][0])


def test_results_of_different_settings_are_not_mixed(tmp_path: Path) -> None:
    records.write(result("uniform", 0, [0.1, 0.2]), tmp_path)
    records.write(result("dapo", 0, [0.1, 0.2], setting="t"), tmp_path)
    with pytest.raises(SystemExit, match="2 results of 2 settings"):
        report.main(["--results", str(tmp_path)])
