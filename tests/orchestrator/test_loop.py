from __future__ import annotations

from pathlib import Path

import pytest
from small_run import always_one, broken, config, env

import sortie
from sortie.core.errors import TrainingError
from sortie.core.run_folder import RunFolder
from sortie.orchestrator.loop import resume_run, train_run
from sortie.orchestrator.summary import Summary


async def trained(model: Path, runs: Path, said: list[str], *envs: sortie.Env, **changes: object) -> Summary:
    return await train_run(config(model, **changes), envs=envs or [env()], runs=runs, name="r", say=said.append)


async def test_training_raises_the_reward(model: Path, tmp_path: Path) -> None:
    """The whole path moves the policy the right way: held-out intervals before and after do not overlap."""
    summary = await trained(model, tmp_path, [], steps=12, eval={"tasks": 4}, optim={"lr": 0.05})
    assert summary.before is not None
    assert summary.after["pooled"].low > summary.before["pooled"].high


async def test_each_step_is_on_policy_and_serves_what_it_trained(model: Path, tmp_path: Path) -> None:
    """Pain H1, I1, G19: ratio 1 at lag 0, at a temperature other than 1; versions move and are the ones sampled."""
    rollouts = {"groups": 2, "group_size": 6, "temperature": 0.6, "limits": {"turn_tokens": 12, "rollout_tokens": 12}}
    await trained(model, tmp_path, [], steps=3, rollouts=rollouts)
    folder = RunFolder.open("r", tmp_path)
    for step in folder.metrics():
        assert step["train/ratio"] == pytest.approx(1.0, abs=1e-4)
        assert step["train/mismatch_max"] < 1e-3
        assert step["update_norm"] > 0
        assert step["policy"] == step["step"]
    for record in folder.trajectories():
        versions = {n.version.number for n in record.trajectory.nodes if n.version is not None}
        assert versions == {max(record.step - (record.phase == "train"), 0)}


async def test_what_the_trainer_reads_is_what_the_engine_read(model: Path, tmp_path: Path) -> None:
    """Pain A8: logprobs of the recorded rows, recomputed on the published weights, are the recorded ones."""
    import torch

    from sortie.models.decoder import Decoder
    from tiny import flat_logprobs

    await trained(model, tmp_path, [], steps=1)
    decoder = Decoder.load(model)
    for record in RunFolder.open("r", tmp_path).trajectories(1):
        if record.phase != "train":
            continue
        (row,) = record.trajectory.rows()
        with torch.no_grad():
            law = flat_logprobs(decoder, row.token_ids)
        for i, (token, on) in enumerate(zip(row.token_ids, row.mask, strict=True)):
            assert not on or row.logprobs[i] == pytest.approx(law[i - 1, token].item(), abs=1e-4)


async def test_a_step_without_differences_moves_nothing_and_says_so(model: Path, tmp_path: Path) -> None:
    """Pain F1, F2, B7."""
    said: list[str] = []
    summary = await trained(model, tmp_path, said, env(always_one), steps=3)
    assert summary.policy.number == 0
    assert any("3 steps in a row had no informative group" in line for line in said)
    assert all(step["trainable_tokens"] == 0 for step in RunFolder.open("r", tmp_path).metrics())


async def test_a_canary_can_stop_the_run(model: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="stopped after step 1 by on_canary = 'stop': nearly every rollout"):
        await trained(model, tmp_path, [], env(always_one), steps=9, on_canary="stop")
    assert RunFolder.open("r", tmp_path).committed_step() == 1  # it can be resumed from here


async def test_a_run_in_which_nothing_can_be_scored_ends_with_the_cause(model: Path, tmp_path: Path) -> None:
    """Pain E9, F13, E1: NaN is no score; when no member has one, the run ends and names reward and value."""
    with pytest.raises(TrainingError, match=r"no rollout .* could be scored.*broken.*nan"):
        await trained(model, tmp_path, [], env(broken), eval={"tasks": 4, "before": False})


async def test_one_environment_that_fails_costs_only_its_own_rollouts(model: Path, tmp_path: Path) -> None:
    """Pain F13, E7: the other environment goes on training."""

    @sortie.reward(inline=True)
    def sometimes(trajectory: sortie.Trajectory) -> float:
        if trajectory.member % 2:
            raise ValueError("no score today")
        return float(sum(n.token_ids[0] for n in trajectory.nodes if n.kind == "sampled"))

    await trained(model, tmp_path, [], env(), env(sometimes, name="flaky"), scheduler={"name": "uniform"}, steps=2)
    metrics = RunFolder.open("r", tmp_path).metrics()
    assert [step["step"] for step in metrics] == [1, 2]
    assert sum(step.get("errors/reward", 0) for step in metrics) > 0


async def test_replacements_of_groups_are_bounded_counted_and_on_record(model: Path, tmp_path: Path) -> None:
    """Pain F1: dynamic sampling pays for what it drops; figures of a step cover every rollout made for it."""

    @sortie.reward(inline=True)
    def one_in_four(task: sortie.Task, trajectory: sortie.Trajectory) -> float:
        number = int(str(task.prompt).split()[-1])
        return 1.0 if number % 4 else float(sum(n.token_ids[0] for n in trajectory.nodes if n.kind == "sampled"))

    scheduler = {"name": "dapo", "most": 3.0}
    await trained(model, tmp_path, [], env(one_in_four, tasks=24), scheduler=scheduler, steps=4)
    folder = RunFolder.open("r", tmp_path)
    steps = folder.metrics()
    for step in steps:
        made = [r for r in folder.trajectories(step["step"]) if r.phase == "train"]
        assert step["rollouts"] == len(made) == 6 * (2 + step["replaced"])
        assert step["sampled_tokens"] == sum(r.trajectory.sampled_tokens for r in made)
        assert step["informative"] < 1 if step["replaced"] else step["informative"] == 1
        assert step["replaced"] <= 4
    assert sum(step["replaced"] for step in steps) > 0
    assert steps[-1]["policy"] > 0


async def test_replacements_that_cannot_be_scored_do_not_end_the_run(model: Path, tmp_path: Path) -> None:
    """Pain F13: the first two groups of the step stand, whatever becomes of those meant to replace them."""
    calls = []

    @sortie.reward(inline=True)
    def fails_at_times() -> float:
        calls.append(1)
        if 12 < len(calls) <= 24:
            raise ValueError("no score today")
        return 1.0

    changes = {"scheduler": {"name": "dapo", "most": 3.0}, "eval": {"tasks": 4, "before": False}}
    await trained(model, tmp_path, [], env(fails_at_times), steps=1, **changes)
    (step,) = RunFolder.open("r", tmp_path).metrics()
    assert step["replaced"] == 4
    assert step["errors/reward"] == 12
    assert step["rollouts"] == 36


async def test_an_evaluation_on_the_way_that_was_cut_short_is_made_up_for_once(model: Path, tmp_path: Path) -> None:
    """Pain J1: the success curve of a resumed run has the points of an uninterrupted one."""
    import asyncio

    def stop(said: str) -> None:
        if said.startswith("step 2/"):
            raise asyncio.CancelledError

    changes = {"steps": 4, "eval": {"tasks": 4, "every": 2}}
    with pytest.raises(asyncio.CancelledError):
        await train_run(config(model, **changes), envs=[env()], runs=tmp_path, name="r", say=stop)
    await resume_run("r", envs=[env()], runs=tmp_path, say=lambda _: None)
    made = [(e["phase"], e["step"]) for e in RunFolder.open("r", tmp_path).events() if e["kind"] == "evaluation"]
    assert made == [("before", 0), ("step 2", 2), ("after", 4)]


async def test_the_same_seed_gives_the_same_run(model: Path, tmp_path: Path) -> None:
    """Randomness is keyed: two runs draw the same tokens."""
    drawn = []
    for name in ("a", "b"):
        await train_run(config(model), envs=[env()], runs=tmp_path, name=name, say=lambda _: None)
        drawn.append(
            sorted(
                (r.phase, r.step, r.trajectory.id, tuple(t for n in r.trajectory.nodes for t in n.token_ids))
                for r in RunFolder.open(name, tmp_path).trajectories()
            )
        )
    assert drawn[0] == drawn[1]


async def test_an_interrupted_run_keeps_every_finished_rollout(model: Path, tmp_path: Path) -> None:
    """Ctrl-C is a cancellation: what has ended is on record, and no thread is left."""
    import asyncio
    import threading

    before = {t.name for t in threading.enumerate()}

    def stop_after_one(line: str) -> None:
        if line.startswith("step 1/"):
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await train_run(config(model, steps=5), envs=[env()], runs=tmp_path, name="r", say=stop_after_one)
    assert len([r for r in RunFolder.open("r", tmp_path).trajectories() if r.phase == "train"]) == 12
    assert not any(t.name.startswith("sortie-") and t.name not in before for t in threading.enumerate())


async def test_rollouts_that_the_clock_cuts_are_told_before_their_scores_are_believed(
    model: Path, tmp_path: Path
) -> None:
    """A busy machine must not pass for a bad policy: in an evaluation and in a step."""
    said: list[str] = []
    slow = {"groups": 2, "group_size": 2, "limits": {"seconds": 0.001, "turn_tokens": 12, "rollout_tokens": 12}}
    settings = config(model, steps=1, rollouts=slow)
    await train_run(settings, envs=[env(always_one)], runs=tmp_path, name="late", say=said.append)
    late = [line for line in said if "4 of 4 rollouts ran out of time (0.001 s)" in line]
    assert len(late) == 3  # before, the step, after
    events = [e for e in RunFolder.open("late", tmp_path).events() if e["kind"] == "warning"]
    assert sum("ran out of time" in event["text"] for event in events) == 3
