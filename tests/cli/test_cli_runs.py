"""`sortie runs`: one rollout whole, runs side by side, rewards anew."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command import Command

from sortie.core.run_folder import RunFolder

CHANGED = '''
import sortie


@sortie.reward(inline=True)
def low(trajectory: sortie.Trajectory) -> float:
    """Twice what it was, and nothing for the second of each group."""
    return 0.0 if trajectory.member else 2.0


@sortie.reward(inline=True)
def of_state(state: object) -> float:
    return 1.0


changed = sortie.Env("echo", tasks=[{"prompt": "say 1"}], rewards=[low])
live = sortie.Env("echo", tasks=[{"prompt": "say 1"}], rewards=[of_state])
elsewhere = sortie.Env("elsewhere", tasks=[{"prompt": "say 1"}], rewards=[low])
'''


@pytest.fixture
def changed(at_work: Path) -> None:
    (at_work / "cli_changed.py").write_text(CHANGED)


def test_the_stored_rollouts_are_listed_with_serial_and_id(sortie: Command, at_work: Path) -> None:
    rows = json.loads(sortie("runs", "show", "first", "--rollouts", "--json")[1])
    assert [row["serial"] for row in rows] == list(range(16))
    assert rows[0]["id"] in sortie("runs", "show", "first", "--rollouts")[1]


def test_one_rollout_shows_turns_masks_timings_text_and_why_it_ended(sortie: Command, at_work: Path) -> None:
    record = next(r for r in RunFolder.open("first").trajectories() if r.phase == "train")
    code, out, _ = sortie("runs", "show", "first", "--rollout", str(record.serial))
    assert code == 0
    assert out.startswith(f"rollout {record.serial}: train, step 1, ended ")
    header = out.splitlines()[2].split()
    assert header == ["node", "kind", "after", "tokens", "trains", "mean", "logprob", "lowest", "seconds", "policy"]
    assert "policy@0 (" in out
    assert "<|im_start|>user\nsay " in out
    assert f"ended    {record.trajectory.stop_reason.value}" in out
    by_id = sortie("runs", "show", "first", "--rollout", record.trajectory.id)[1]
    assert by_id.splitlines()[0].startswith("rollout ")


def test_the_token_table_holds_the_rows_that_train(sortie: Command, at_work: Path) -> None:
    """Masks and log-probabilities are those of the training row, token for token."""
    record = next(r for r in RunFolder.open("first").trajectories() if r.phase == "train")
    (row,) = record.trajectory.rows()
    _, out, _ = sortie("runs", "show", "first", "--rollout", str(record.serial), "--tokens")
    start = next(i for i, line in enumerate(out.splitlines()) if line.startswith("node  kind") and "mask" in line)
    table = [line.rsplit(None, 2) for line in out.splitlines()[start + 1 : start + 1 + len(row.token_ids)]]
    assert [int(mask) for _, mask, _ in table] == row.mask
    drawn = [float(logprob) for _, mask, logprob in table if mask == "1"]
    assert drawn == pytest.approx([lp for lp, on in zip(row.logprobs, row.mask, strict=True) if on], abs=1e-3)


def test_a_rollout_as_json_is_everything_that_is_stored(sortie: Command, at_work: Path) -> None:
    shown = json.loads(sortie("runs", "show", "first", "--rollout", "5", "--json")[1])
    (record,) = [r for r in RunFolder.open("first").trajectories() if r.serial == 5]
    assert shown["id"] == record.trajectory.id
    assert [ids for ids, _ in shown["tokens"]] == [list(n.token_ids) for n in record.trajectory.nodes]
    assert shown["trains"] == [n.kind == "sampled" for n in record.trajectory.nodes]


def test_a_run_whose_model_is_gone_still_shows_its_numbers(
    sortie: Command, at_work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = at_work / "runs"
    monkeypatch.chdir(tmp_path)
    code, out, _ = sortie("runs", "show", "first", "--rollout", "5", "--runs", runs)
    assert code == 0
    assert "./tiny is not on this machine to spell them" in out


def test_a_rollout_that_is_not_there_is_refused_with_one_that_is(sortie: Command, at_work: Path) -> None:
    code, _, err = sortie("runs", "show", "first", "--rollout", "echo/none@0.0")
    assert code == 2
    assert "serial 15" in err
    assert sortie("runs", "show", "first", "--tokens")[0] == 2


def test_runs_side_by_side_show_what_differs(sortie: Command, at_work: Path, tmp_path: Path) -> None:
    first = at_work / "runs" / "first"
    shutil.copytree(first, tmp_path / "one")
    settings = (first / "config.toml").read_text()
    assert "\nsteps = 2\n" in settings
    (tmp_path / "one" / "config.toml").write_text(settings.replace("\nsteps = 2\n", "\nsteps = 1\n"))
    found = json.loads(sortie("runs", "compare", first, tmp_path / "one", "--json")[1])
    assert found["settings"] == {"steps": {"first": 2, "one": 1}}
    assert [found["results"][name]["steps"] for name in ("first", "one")] == [2, 2]
    assert found["results"]["one"]["after"]["pooled"]["n"] == 4
    _, out, _ = sortie("runs", "compare", first, tmp_path / "one")
    assert "after pooled" in out
    assert sortie("runs", "compare", first)[0] == 2


@pytest.mark.usefixtures("changed")
def test_replay_scores_stored_rollouts_by_the_changed_reward(sortie: Command, at_work: Path) -> None:
    code, out, _ = sortie("runs", "replay", "first", "--env", "cli_changed:changed", "--step", "1", "--json")
    found = json.loads(out)
    assert code == 0
    assert [r["after"] for r in sorted(found["rollouts"], key=lambda r: r["id"])] == [2.0, 0.0] * 2
    assert found["informative"]["after"] == 1.0
    assert found["reward"]["after"] == 1.0
    assert (
        "4 of 4 rollouts of echo changed"
        in sortie("runs", "replay", "first", "--env", "cli_changed:changed", "--step", "1")[1]
    )


@pytest.mark.usefixtures("changed")
def test_replay_says_in_one_line_what_it_cannot_do(sortie: Command, at_work: Path) -> None:
    code, _, err = sortie("runs", "replay", "first", "--env", "cli_changed:live")
    assert (code, err.count("\n")) == (2, 1)
    assert "of_state needs state" in err
    assert "there: echo" in sortie("runs", "replay", "first", "--env", "cli_changed:elsewhere")[2]
