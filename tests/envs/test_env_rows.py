from __future__ import annotations

import json
from pathlib import Path

import pytest

from sortie.agents.reward import reward
from sortie.core.errors import ConfigError
from sortie.core.messages import system, user
from sortie.core.task import Task
from sortie.envs import Env, TaskSource

ROWS = [{"prompt": f"What is {n}+{n}?", "result": 2 * n} for n in range(40)]


@reward
def correct(answer: str | None, result: int) -> bool:
    return answer == str(result)


def written(path: Path, *lines: object) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def everything(env: Env) -> list[Task]:
    return [*env.tasks("train"), *env.tasks("heldout")]


def faults(env: Env) -> list[str]:
    with pytest.raises(ConfigError) as error:
        env.tasks("train")
    return str(error.value).splitlines()


def test_a_file_a_list_a_function_and_task_objects_give_the_same_tasks(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", *ROWS)
    tasks = [Task(env="sums", prompt=str(row["prompt"]), data={"result": row["result"]}) for row in ROWS]
    sources: list[TaskSource] = [
        path,
        str(path),
        ROWS,
        lambda: iter(ROWS),
        tasks,
        Env("sums", tasks=ROWS, heldout=0.0).tasks("train"),
    ]
    made = [sorted(task.key for task in everything(Env("sums", tasks=source))) for source in sources]
    assert made == [sorted(task.key for task in tasks)] * len(sources)


def test_keys_without_a_meaning_become_data_and_the_others_do_not() -> None:
    row = {"prompt": "Hi", "id": 7, "level": 2, "split": "train", "env": "talk", "mood": {"kind": "gay"}, "data": 1}
    (task,) = Env("talk", tasks=[row]).tasks("train")
    assert task == Task(env="talk", prompt="Hi", id="7", level=2, data={"mood": {"kind": "gay"}, "data": 1})


def test_a_prompt_may_be_a_conversation() -> None:
    row = {"prompt": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]}
    (task,) = Env("talk", tasks=[row], heldout=0.0).tasks("train")
    assert task.prompt == (system("Be brief."), user("Hi"))


def test_every_faulty_row_gets_a_line_naming_its_place_and_its_fault_before_anything_runs(tmp_path: Path) -> None:
    """Pain C8."""
    path = written(
        tmp_path / "rows.jsonl",
        ROWS[0],
        "{not json}",
        [1, 2],
        {"result": 3},
        {"prompt": 12, "result": 3},
        {"prompt": "", "result": 3},
        {"prompt": "x", "result": 3, "split": "test"},
        {"prompt": "x", "result": 3, "env": "sum"},
        {"prompt": "x"},
        '{"prompt": "x", "result": NaN}',
    )
    lines = faults(Env("sums", tasks=path, rewards=[correct]))
    assert [line.split(": ")[0] for line in lines] == [f"{path}:{n}" for n in range(2, 11)]
    wanted = ["not JSON", "a row is an object", "'prompt' is missing", "12", "''", "'test'", "'sum', not 'sums'"]
    wanted += ["reward 'correct' asks for 'result'", "NaN is not JSON"]
    assert [word for word, line in zip(wanted, lines, strict=True) if word not in line] == []


def test_a_long_list_of_faults_is_cut_and_counted() -> None:
    lines = faults(Env("sums", tasks=[{"result": 1}] * 25))
    assert len(lines) == 11
    assert lines[-1] == "and 15 more faulty rows"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("rows.csv", b"prompt\nx\n", "give a .jsonl file"),
        ("none.jsonl", None, "No such file"),
        ("latin.jsonl", b'{"prompt": "caf\xe9"}\n', "not UTF-8"),
        ("empty.jsonl", b"\n\n", "has no tasks"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, name: str, content: bytes | None, says: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    (line,) = faults(Env("sums", tasks=tmp_path / name))
    assert name in line
    assert says in line


def test_a_line_separator_inside_a_string_does_not_end_the_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "one\u2028two"}\n', encoding="utf-8-sig")
    (task,) = Env("talk", tasks=path, heldout=0.0).tasks("train")
    assert task.prompt == "one\u2028two"


def test_tasks_that_are_no_rows_at_all_are_refused() -> None:
    (line,) = faults(Env("sums", tasks=lambda: 3))  # type: ignore[arg-type, return-value]
    assert "function returning rows" in line


def test_a_repeated_row_is_one_task_and_a_reused_id_is_an_error() -> None:
    """Pain F7."""
    assert len(everything(Env("sums", tasks=[*ROWS, *ROWS]))) == len(ROWS)
    (line,) = faults(Env("sums", tasks=[{"prompt": "a", "id": "1"}, {"prompt": "b", "id": "1"}]))
    assert line == "tasks[1]: id '1' is already that of tasks[0]"


def test_a_task_object_of_another_environment_is_refused() -> None:
    (line,) = faults(Env("sums", tasks=[Task(env="products", prompt="x")]))
    assert line == "tasks[0]: belongs to environment 'products', not 'sums'"
