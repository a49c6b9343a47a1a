from __future__ import annotations

import re
from fractions import Fraction

import pytest
from env_runs import by_level, call, play
from hypothesis import given, settings, strategies as st

from sortie.core.errors import ToolError
from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.envs import build
from sortie.envs.catalog.checkout.money import Money
from sortie.envs.catalog.checkout.tasks import CURRENCIES, WORTHS

ENV = build("checkout", levels=[1, 2, 3, 4, 5, 6], tasks_per_level=20, heldout_per_level=4)
TASKS = by_level(ENV, 4)
TASK = Task(
    env="checkout",
    prompt="What do 3 cups cost in USD?",
    data={
        "prices": {"cups": "5 EUR", "pens": "2 USD"},
        "worth": {"EUR": 5, "USD": 4},
        "result": "18.75 USD",
        "turns": [],
    },
)
RIGHT = [call("times", amount="5 EUR", n=3), call("change", amount="15 EUR", to="USD"), "18.75 USD"]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
async def test_the_oracle_scores_one_and_doing_nothing_zero(task: Task) -> None:
    assert ENV.oracle is not None
    solved = await play(ENV, task, ENV.oracle(task))
    assert (solved.reward, solved.parse_errors, any(record.error for record in solved.tools)) == (1.0, 0, False)
    assert solved.tools[-1].output == task.data["result"]
    assert (await play(ENV, task, [""])).reward == 0.0


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
def test_the_result_is_what_the_prompt_asks_for(task: Task) -> None:
    amount, currency = task.data["result"].split()
    found = re.fullmatch(r"What (?:is the price of|do) (.*?)(?: cost)?(?: in (\w+))?\?", str(task.prompt))
    assert found is not None
    total = Fraction(0)
    for part in found[1].split(" and "):
        n, item = part.split() if " " in part else ("1", part)
        price, own = task.data["prices"][item].split()
        total += int(n) * Fraction(price) * task.data["worth"][own] / task.data["worth"][currency]
    assert (total, found[2] or currency) == (Fraction(amount), currency)


async def test_calls_that_do_not_wait_for_each_other_share_a_turn() -> None:
    assert ENV.oracle is not None
    for task in by_level(ENV, 4)[-8:]:
        played = await play(ENV, task, ENV.oracle(task))
        assert len(played.tools) > played.turns - 1


@settings(deadline=None, max_examples=60)
@given(
    st.integers(2, 99),
    st.integers(2, 99),
    st.integers(1, 12),
    st.lists(st.sampled_from(WORTHS), min_size=3, max_size=3, unique=True),
)
def test_every_way_of_reckoning_comes_to_the_same_amount(one: int, other: int, n: int, worths: list[int]) -> None:
    worth = dict(zip(CURRENCIES, worths, strict=False))
    here, there, third = worth
    a, b = Money.of(f"{one} {here}"), Money.of(f"{other} {third}")

    def again(money: Money) -> Money:
        return Money.of(str(money))  # as a model copies it from one call to the next

    late = again(again(again(a.times(n)).change(there, worth)).plus(again(b.change(there, worth))))
    early = again(again(again(a.change(there, worth)).times(n)).plus(again(b.change(there, worth))))
    assert str(late) == str(early)


@pytest.mark.parametrize(
    ("says", "reward"),
    [
        (RIGHT, 1.0),
        ([call("price", item="cups"), *RIGHT], 1.0),
        ([call("change", amount="5 EUR", to="USD"), call("times", amount="6.25 USD", n=3), "18.75 USD"], 1.0),
        (["18.75"], 0.0),
        (["15 EUR"], 0.0),
        (["18.75 USD or 15 EUR"], 0.0),
        ([*RIGHT[:2]] + [call("price", item="cups")] * 5, 0.0),
    ],
)
async def test_only_the_amount_with_its_currency_counts(says: list[Message | str], reward: float) -> None:
    assert (await play(ENV, TASK, says)).reward == reward


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        (call("price", item="cup"), "error: no item 'cup'; there are: cups, pens"),
        (call("times", amount="five", n=2), "error: 'five' is no amount; write it like 12 EUR"),
        (call("times", amount="5 EUR", n=0), "error: n must be at least 1"),
        (call("times", amount="5 EUR", n=10**18), "error: more than 1000000000 EUR"),
        (call("plus", a="5 EUR", b="2 USD"), "error: EUR and USD differ; change one first"),
        (call("change", amount="5 EUR", to="SEK"), "error: no currency 'SEK'; there are: EUR, USD"),
        (call("change", amount="5 SEK", to="EUR"), "error: no currency 'SEK'; there are: EUR, USD"),
    ],
)
async def test_a_call_that_cannot_be_says_why(turn: Message, says: str) -> None:
    """Pain C1."""
    played = await play(ENV, TASK, [turn, *RIGHT])
    assert (played.tools[0].output, played.reward) == (says, 1.0)


@pytest.mark.parametrize(
    "text", ["nan EUR", "1e9 EUR", "-5 EUR", "9" * 40 + " EUR", "٣ EUR", "5", "5 euro", "5EUR", ""]
)
def test_what_is_no_plain_amount_is_refused(text: str) -> None:
    """Pain C4."""
    with pytest.raises(ToolError, match="is no amount"):
        Money.of(text)


@pytest.mark.parametrize(
    ("text", "spelled"), [("12 EUR", "12 EUR"), (" 12.50 EUR ", "12.5 EUR"), ("0.125 JPY", "0.125 JPY")]
)
def test_amounts_are_spelled_the_short_way(text: str, spelled: str) -> None:
    assert str(Money.of(text)) == spelled


def test_no_held_out_wording_is_trained_on_or_shown() -> None:
    env = build("checkout", levels=[1, 2, 3, 4, 5, 6], tasks_per_level=100, heldout_per_level=20)
    train, heldout = ({task.prompt for task in env.tasks(split)} for split in ("train", "heldout"))
    shown = {example[0].content for example in env.examples}
    assert not heldout & (train | shown)


def test_the_example_has_as_many_items_as_the_bills() -> None:
    def prices(levels: list[int]) -> list[int]:
        (example,) = build("checkout", levels=levels).examples
        return [len(message.tool_calls) for message in example if message.tool_calls]

    assert prices([1, 4]) == [1, 1, 1]
    assert prices([4, 5]) == [2, 2, 1, 1]
