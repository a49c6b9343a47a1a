from __future__ import annotations

import pytest
from env_runs import by_level, call, play

from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.core.trajectory import StopReason
from sortie.envs import build
from sortie.envs.catalog.guess.game import read

ENV = build("guess", levels=[1, 2, 3, 4, 5, 6], tasks_per_level=20, heldout_per_level=20)
TASKS = by_level(ENV, 5)
TASK = Task(env="guess", prompt="Guess 5 to 11, 3 tries.", data={"low": 5, "high": 11, "tries": 3, "secret": 6})


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
async def test_halving_always_finds_the_secret_in_time(task: Task) -> None:
    assert ENV.oracle is not None
    played = await play(ENV, task, ENV.oracle(task))
    assert (played.reward, played.stop_reason) == (1.0, StopReason.ENV_DONE)


def test_every_secret_of_a_range_is_within_reach_and_none_with_a_try_less() -> None:
    assert ENV.oracle is not None
    for tries in range(2, 8):
        low, high = 40, 40 + 2**tries - 2
        data = {"low": low, "high": high, "tries": tries}
        turns = [
            len(ENV.oracle(Task(env="guess", prompt="", data={**data, "secret": n}))) for n in range(low, high + 1)
        ]
        assert max(turns) == tries


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
def test_the_prompt_says_what_the_game_holds(task: Task) -> None:
    _, low, _, high, tries, _ = str(task.prompt).replace(",", "").split()
    assert [int(low), int(high), int(tries)] == [task.data[key] for key in ("low", "high", "tries")]
    assert task.data["low"] <= task.data["secret"] <= task.data["high"]


@pytest.mark.parametrize(
    ("says", "reward", "reason"),
    [
        (["6"], 1.0, StopReason.ENV_DONE),
        (["8", "6"], 1.0, StopReason.ENV_DONE),
        ([" 6.\n"], 1.0, StopReason.ENV_DONE),
        (["8", "7", "5", "6"], 0.0, StopReason.ENV_DONE),
        (["5 6 7"] * 4, 0.0, StopReason.ENV_DONE),
        (["?", "", "more", "6"], 0.0, StopReason.ENV_DONE),
        ([call("guess", n=6)] * 9, 0.0, StopReason.TURN_LIMIT),
    ],
)
async def test_only_a_number_alone_is_a_guess_and_every_word_costs_a_try(
    says: list[Message | str], reward: float, reason: StopReason
) -> None:
    played = await play(ENV, TASK, says)
    assert (played.reward, played.stop_reason) == (reward, reason)


async def test_the_game_says_which_way_to_go() -> None:
    played = await play(ENV, TASK, ["5", "9", "x"])
    heard = ["".join(map(chr, node.token_ids)) for node in played.nodes if node.kind == "observation"]
    assert ["more" in text for text in heard] == [True, False]
    assert ["less" in text for text in heard] == [False, True]


@pytest.mark.parametrize(
    ("text", "guess"), [("12", 12), ("12.", 12), ("-3", None), ("12 13", None), ("1e3", None), ("٣", None), ("", None)]
)
def test_a_guess_is_read_strictly(text: str, guess: int | None) -> None:
    assert read(text) == guess
