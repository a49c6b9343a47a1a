"""The pattern of benchmarks.agents through the real RolloutEngine and the embedded engine, over the model `tiny`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from benchmarks.agents import LATENCIES_S, OURS, THEIRS, Round, Side, check, make_row, make_targets, one_round
from benchmarks.pattern import DRAWN, GROUP, OBSERVED, PROMPT, TURNS, Endless, PrefixSet, make_env
from benchmarks.rivals.venv import RivalError
from sortie import models
from sortie.core.messages import assistant, user
from sortie.core.trajectory import Trajectory
from sortie.inference.embedded.engine import EmbeddedEngine
from sortie.inference.renderers import renderer_for
from sortie.models.placement import place

ROUND = Round(seconds=2.0, rollouts=8, prompts=900, drawn=100, prefilled=300, distinct=300)


@pytest.fixture(scope="module")
def renderer() -> Endless:
    return Endless(renderer_for(models.resolve("tiny")))


@pytest.fixture
async def side() -> AsyncIterator[Side]:
    async with EmbeddedEngine(place(models.resolve("tiny"), threads=1)) as engine:
        yield Side(OURS, engine, lambda: engine.metrics()["prefilled_tokens"])


def trajectory(*nodes: tuple[str, list[int]]) -> Trajectory:
    made = Trajectory(id="r", task_key="t", env="e")
    for i, (kind, ids) in enumerate(nodes):
        logprobs = [-1.0] * len(ids) if kind == "sampled" else None
        made.add(kind, ids, i - 1 if i else None, logprobs=logprobs)  # type: ignore[arg-type]
    return made


def test_prompts_and_observations_have_their_lengths_and_differ(renderer: Endless) -> None:
    env = make_env(renderer, groups=3, latency_s=0.0, key="a")
    prompts = [task.prompt for task in env.tasks("train")]
    assert len(set(prompts)) == 3
    assert {len(renderer.render([user(str(prompt))])) for prompt in prompts} == {PROMPT}
    observations = [text for member in env.agent.observations for text in member]  # type: ignore[attr-defined]
    assert len(set(observations)) == GROUP * (TURNS - 1)
    drawn = renderer.encode("no end")
    grown = [renderer.extend([user("x"), assistant("no end")], drawn, [user(text)]) for text in observations]
    assert {len(ids) for ids in grown} == {OBSERVED}


def test_a_pattern_depends_on_its_key_alone(renderer: Endless) -> None:
    one, same, other = (make_env(renderer, groups=1, latency_s=0.0, key=key) for key in ("a", "a", "b"))
    assert one.tasks("train")[0] == same.tasks("train")[0] != other.tasks("train")[0]


async def test_a_round_does_the_work_that_the_pattern_says(side: Side, renderer: Endless) -> None:
    """Each prompt once per group, then each member's own turns and observations: drawn work is the same for any server,
    and the embedded engine computes no more of the prompts than one token per member above the distinct ones."""
    done = await one_round(side, renderer, groups=2, latency_s=0.0, repeat=0)
    members = 2 * GROUP
    assert done.rollouts == members
    assert done.drawn == members * TURNS * DRAWN
    turns = [PROMPT + i * (DRAWN + OBSERVED) for i in range(TURNS)]
    assert done.prompts == pytest.approx(members * sum(turns), rel=0.005)
    assert 0 <= done.prefilled - done.distinct <= members


def test_distinct_prompt_tokens_are_counted_by_hand() -> None:
    """A shared prompt of 3, two turns of 2: the last token of a turn is computed with the prompt that follows."""
    first = trajectory(("prompt", [1, 2, 3]), ("sampled", [4, 5]), ("observation", [6]), ("sampled", [7, 8]))
    second = trajectory(("prompt", [1, 2, 3]), ("sampled", [4, 9]), ("observation", [6]), ("sampled", [7, 8]))
    computed = PrefixSet()
    assert computed.prompted([first, second]) == 3 + (1 + 1) + (1 + 1)
    assert computed.prompted([first]) == 0


def test_a_rollout_that_is_not_the_pattern_is_refused() -> None:
    whole = trajectory(("prompt", [1]), *[("sampled", [2] * DRAWN)] * TURNS)
    check("x", whole)
    short = trajectory(("prompt", [1]), *[("sampled", [2] * DRAWN)] * (TURNS - 1), ("sampled", [2]))
    with pytest.raises(RivalError, match="drew turns of"):
        check("x", short)
    whole.nodes[1].logprobs = None
    with pytest.raises(RivalError, match="1 without logprobs"):
        check("x", whole)
    whole.error = "no server"
    with pytest.raises(RivalError, match="failed: no server"):
        check("x", whole)


def test_speed_is_only_compared_for_the_same_work() -> None:
    slow = replace(ROUND, seconds=3.0)
    targets = make_targets({latency: {OURS: [ROUND], THEIRS: [slow]} for latency in LATENCIES_S})
    assert [target["value"] for target in targets] == [1.5, 1.5, 1.0]
    assert all(target["met"] for target in targets)
    with pytest.raises(RivalError, match="not the same work"):
        make_targets({latency: {OURS: [ROUND], THEIRS: [replace(slow, drawn=80)]} for latency in LATENCIES_S})


def test_without_the_rival_its_targets_are_open_and_our_own_is_judged() -> None:
    wasteful = replace(ROUND, prefilled=301)
    *open_ones, own = make_targets({latency: {OURS: [wasteful]} for latency in LATENCIES_S})
    assert [target["met"] for target in open_ones] == [None, None]
    assert own["met"] is False


def test_a_row_says_how_much_work_was_done() -> None:
    row = make_row(THEIRS, 0.05, [replace(ROUND, seconds=4.0, drawn=90)], [ROUND])
    assert row["latency_ms"] == 50
    assert row["rollouts_per_s"] == 2.0
    assert row["work"] == pytest.approx(0.99)
    assert row["sortie_bf16_is_x"] == 2.0
