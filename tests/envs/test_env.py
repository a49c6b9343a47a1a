from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies as st

from sortie.agents.react import ReAct
from sortie.agents.reward import reward
from sortie.agents.tool import tool
from sortie.core.errors import ConfigError
from sortie.core.group import EnvironmentRecord
from sortie.core.task import TaskSet
from sortie.envs import Env
from sortie.envs.rows import TaskSource
from sortie.resources.spec import ResourceSpec

ROWS = [{"prompt": f"question {n}"} for n in range(200)]


@dataclass(frozen=True, kw_only=True)
class Desk(ResourceSpec[str]):
    label_text: str = "desk"

    async def start(self) -> str:
        return self.label_text


@tool(needs=Desk())
def look() -> str:
    """Look."""
    return "nothing"


@reward(needs=[Desk(), Desk(label_text="referee")])
def fine() -> float:
    return 1.0


def keys(tasks: TaskSet) -> set[str]:
    return {task.key for task in tasks}


@settings(deadline=None, max_examples=30)
@given(st.sets(st.text(min_size=1), min_size=1, max_size=40), st.sets(st.text(min_size=1), max_size=40))
def test_adding_rows_moves_no_task_to_the_other_split(first: set[str], more: set[str]) -> None:
    def split(prompts: set[str]) -> tuple[set[str], set[str]]:
        env = Env("own", tasks=[{"prompt": "always trained on", "split": "train"}, *({"prompt": p} for p in prompts)])
        return keys(env.tasks("train")), keys(env.tasks("heldout"))

    train, heldout = split(first)
    train_later, heldout_later = split(first | more)
    assert train <= train_later
    assert heldout <= heldout_later
    assert not train_later & heldout_later


@pytest.mark.parametrize(("share", "low", "high"), [(None, 20, 60), (0.5, 70, 130), (0.0, 0, 0)])
def test_the_held_out_share_is_about_what_was_asked_for(share: float | None, low: int, high: int) -> None:
    env = Env("own", tasks=ROWS, heldout=share)
    assert low <= len(env.tasks("heldout")) <= high
    assert len(env.tasks("train")) + len(env.tasks("heldout")) == len(ROWS)


def test_a_row_may_declare_its_split() -> None:
    env = Env("own", tasks=[{**row, "split": "heldout" if n < 30 else "train"} for n, row in enumerate(ROWS)])
    assert [task.prompt for task in env.tasks("heldout")] == [row["prompt"] for row in ROWS[:30]]


def test_held_out_tasks_may_come_from_a_source_of_their_own() -> None:
    env = Env("own", tasks=ROWS[:5], heldout=ROWS[5:7])
    assert (len(env.tasks("train")), len(env.tasks("heldout"))) == (5, 2)


@pytest.mark.parametrize(
    ("tasks", "heldout", "says"),
    [
        (ROWS[:5], ROWS[4:7], "tasks[4] is held out as well, as tasks[0]"),
        ([{"prompt": "a", "id": "1"}], [{"prompt": "a", "id": "2"}], "the splits must share no task"),
        ([{"prompt": "a", "split": "train"}], ROWS, "declares a split, but heldout= gives a source"),
        ([{"prompt": "a", "split": "heldout"}], None, "all 1 tasks are held out"),
    ],
)
def test_splits_that_contradict_themselves_are_refused(
    tasks: TaskSource, heldout: TaskSource | float | None, says: str
) -> None:
    with pytest.raises(ConfigError) as error:
        Env("own", tasks=tasks, heldout=heldout).tasks("train")
    assert says in str(error.value)


def test_what_tools_rewards_and_the_environment_need_is_declared_once_each() -> None:
    env = Env("own", tasks=ROWS, tools=[look], rewards=[fine], resources=[Desk(label_text="own"), Desk()])
    assert [spec.label_text for spec in env.needs if isinstance(spec, Desk)] == ["desk", "referee", "own"]


def test_an_environment_describes_itself_to_the_task_scheduler() -> None:
    env = Env("own", tasks=ROWS, tools=[look], description="Looking around")
    assert env.record == EnvironmentRecord(name="own", description="Looking around", tools=("look",))


def test_without_an_agent_it_is_react() -> None:
    assert Env("own", tasks=ROWS).agent == ReAct()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tools": [len]}, "len is not a tool; decorate it with @sortie.tool"),
        ({"rewards": [len]}, "len is not a reward; decorate it with @sortie.reward"),
        ({"tools": [look, look]}, "two tools called 'look'"),
        ({"heldout": 1.5}, "must be in [0, 1)"),
    ],
)
def test_a_part_that_cannot_be_is_refused_when_the_environment_is_made(options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError) as error:
        Env("own", tasks=ROWS, **options)  # type: ignore[arg-type]
    assert says in str(error.value)


@pytest.mark.parametrize("name", ["", "a/b"])
def test_a_name_that_would_break_task_keys_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="without '/'"):
        Env(name, tasks=ROWS)
