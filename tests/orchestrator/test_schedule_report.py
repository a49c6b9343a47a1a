"""What a run's scheduler predicted, spent and learned, told from its folder alone.

Pain: nobody can say why a curriculum chose what it chose, nor where rollouts went that taught nothing.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from pathlib import Path

import pytest
from small_run import always_one, capitals, config, env

from sortie.core.errors import UnknownName, UsageError
from sortie.core.run_folder import RunFolder
from sortie.envs import Env
from sortie.orchestrator.loop import train_run
from sortie.orchestrator.schedule import ScheduleReport, explain_run
from sortie.orchestrator.schedule.plot import draw

STEPS = 3
PNG = b"\x89PNG\r\n\x1a\n"


def worlds() -> list[Env]:
    return [env(capitals, name="letters"), env(always_one, name="given")]


def trained(model: Path, runs: Path, scheduler: str) -> RunFolder:
    tables = [{"name": "letters"}, {"name": "given"}]
    settings = config(model, steps=STEPS, scheduler={"name": scheduler}, env=tables)
    asyncio.run(train_run(settings, envs=worlds(), runs=runs, name=scheduler, say=lambda line: None))
    return RunFolder.open(scheduler, runs)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def planned(model: Path, runs: Path) -> RunFolder:
    return trained(model, runs, "envsched")


@pytest.fixture(scope="module")
def plain(model: Path, runs: Path) -> RunFolder:
    return trained(model, runs, "uniform")


def check_sums(told: ScheduleReport, folder: RunFolder) -> None:
    """Whatever is split up adds up to what the journal holds."""
    journal = [r.trajectory for r in folder.trajectories() if r.phase == "train"]
    assert told.rollouts == len(journal) == STEPS * 2 * 6
    environments = [factor for factor in told.factors if factor.kind == "environment"]
    assert sum(factor.rollouts for factor in environments) == told.rollouts
    assert sum(factor.whole.groups for factor in environments) == told.groups == STEPS * 2
    assert [sum(step.groups.values()) for step in told.step_reports] == [2] * STEPS
    given = sum(t.env == "given" for t in journal)
    assert sum(waste.rollouts for waste in told.wasted) == given  # always 1; letters' rewards differ
    assert {waste.cause for waste in told.wasted} <= {"truncated", "all solved"}
    assert told.wasted_share == pytest.approx(given / told.rollouts)


def test_a_planned_run_says_what_was_predicted_and_what_came(planned: RunFolder) -> None:
    told = explain_run(planned, envs=worlds())
    check_sums(told, planned)
    assert told.predicts
    assert told.notes == ()
    assert {factor.kind for factor in told.factors} == {"environment", "hint", "pattern"}
    assert {one.what for one in told.calibration} == {"informative", "variance", "success"}
    noted = {step: [note["expected"] for note in notes] for step, notes in planned.groups().items()}
    for step, line in zip(told.step_reports, planned.metrics(), strict=True):
        assert step.informative == pytest.approx(line["informative"])
        assert step.predicted_informative == pytest.approx(sum(e["chance"] for e in noted[step.step]) / 2)
        assert step.predicted_informative == pytest.approx(line["scheduler/predicted_informative_share"], abs=0.03)


def test_hints_and_patterns_have_names_a_reader_knows(planned: RunFolder) -> None:
    told = explain_run(planned, envs=worlds())
    names = {kind: [factor.name for factor in told.factors if factor.kind == kind] for kind in ("hint", "pattern")}
    assert names["hint"] == ["no words"] or any("go" in name for name in names["hint"])
    assert all(name.startswith("1 turn, ") and "no tools" in name for name in names["pattern"])


def test_a_task_is_told_why_it_was_or_was_not_chosen_at_the_last_select(planned: RunFolder) -> None:
    book = {task.key for one in worlds() for task in one.tasks("train")}
    told = explain_run(planned, tasks=sorted(book), envs=worlds())
    last = {note["key"]: note["expected"] for note in planned.groups()[STEPS]}
    assert {task.key for task in told.tasks if task.chosen} == set(last)
    for task in told.tasks:
        assert task.value == pytest.approx((task.signal + task.spread + task.coverage) / task.divisor)  # type: ignore[operator]
        assert task.why.startswith("chosen " if task.chosen else "not chosen: ")
        if task.key in last:
            assert task.value == pytest.approx(last[task.key]["value"])  # the same select, made again from the state
    assert Counter(task.rank for task in told.tasks) == Counter(range(1, len(book) + 1))
    tried = {group["key"] for step in (1, 2) for group in planned.groups()[step]}
    assert {task.key for task in told.tasks if task.visits} == tried


def test_explaining_changes_nothing_and_the_next_select_is_the_one_told(planned: RunFolder) -> None:
    before = {path: path.read_bytes() for path in planned.path.rglob("*") if path.is_file()}
    told = explain_run(planned, envs=worlds())
    assert {path: path.read_bytes() for path in planned.path.rglob("*") if path.is_file()} == before
    assert told == explain_run(planned, envs=worlds())
    assert [task.chosen for task in told.next] == [True] * 2


def test_a_scheduler_without_predictions_shows_what_was_spent(plain: RunFolder) -> None:
    told = explain_run(plain, envs=worlds(), tasks=[plain.groups()[STEPS][0]["key"]])
    check_sums(told, plain)
    assert not told.predicts
    assert any("uniform predicts nothing" in note for note in told.notes)
    assert told.calibration == ()
    assert all(step.predicted_variance is None for step in told.step_reports)
    (task,) = told.tasks
    assert task.chosen
    assert task.value is None
    assert draw(told).startswith(PNG)


def test_a_run_cut_short_is_explained_up_to_its_last_step(planned: RunFolder, tmp_path: Path) -> None:
    """Pain K9: what a kill left is still of use; rollouts of the step under way are said, not counted."""
    shutil.copytree(planned.path, tmp_path / "cut")
    cut = RunFolder.open(tmp_path / "cut")
    (cut.path / "summary.json").unlink()
    shutil.rmtree(cut.checkpoint_dir / f"step-{STEPS}")
    lines = (cut.path / "metrics.jsonl").read_text().splitlines(keepends=True)
    (cut.path / "metrics.jsonl").write_text("".join(lines[: STEPS - 1]))
    told = explain_run(cut, envs=worlds())
    assert (told.status, told.steps, told.unfinished, told.groups) == ("interrupted", STEPS - 1, 12, (STEPS - 1) * 2)
    coming = [task.key for task in told.next]
    assert coming == [note["key"] for note in cut.groups()[STEPS]]  # what it would go on with is what it went on with


def test_a_run_without_records_of_predictions_is_still_told(planned: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(planned.path, tmp_path / "old")
    (tmp_path / "old" / "groups.jsonl").unlink()
    told = explain_run(tmp_path / "old", envs=worlds())
    assert any("kept no predictions per group" in note for note in told.notes)
    assert told.calibration == ()
    assert told.step_reports[1].predicted_variance is not None  # the means of the metrics
    assert draw(told).startswith(PNG)


def test_a_run_whose_environments_are_gone_is_told_without_beliefs(planned: RunFolder) -> None:
    told = explain_run(planned)
    assert any("cannot be rebuilt" in note and "letters" in note for note in told.notes)
    assert told.groups == STEPS * 2
    assert told.calibration  # predictions that were recorded need no environment
    with pytest.raises(UsageError, match="cannot be rebuilt"):
        explain_run(planned, tasks=["letters/1"])


def test_wrong_names_are_refused_with_the_nearest(planned: RunFolder, runs: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'letters'"):
        explain_run(planned, env="leters", envs=worlds())
    with pytest.raises(UnknownName, match="did you mean 'envsched'"):
        explain_run("envshed", runs=runs)
    key = worlds()[0].tasks("train")[0].key
    with pytest.raises(UsageError, match=f"the nearest is {key}"):
        explain_run(planned, tasks=[key[:-1] + "_"], envs=worlds())
    with pytest.raises(UsageError, match="tasks begin with 'letters/'"):
        explain_run(planned, tasks=["letters/"], envs=worlds())


def test_one_environment_alone_is_told_of_its_own_groups_only(planned: RunFolder) -> None:
    only = explain_run(planned, env="given", envs=worlds())
    for step in only.step_reports:
        assert (step.predicted_variance is None) == (not step.groups)
    assert only.tried_tasks == len(
        {n["key"] for notes in planned.groups().values() for n in notes if "given/" in n["key"]}
    )
    assert {factor.name for factor in only.factors if factor.kind == "environment"} == {"given"}


def test_a_run_before_its_first_step_says_so(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, "young") as folder:
        folder.write_config(config(tmp_path).to_toml())
    told = explain_run(folder, envs=[env()])
    assert "no step has finished yet, so nothing can be counted" in told.notes
    assert told.rollouts == 0
    assert len(told.next) == 2
    assert draw(told).startswith(PNG)
