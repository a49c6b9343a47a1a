from __future__ import annotations

import asyncio
import re

import pytest
from env_runs import by_level, call, play

from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.envs import build
from sortie.envs.catalog.retrieval_qa.corpus import corpus
from sortie.envs.catalog.retrieval_qa.library import HITS, Document, Library

ENV = build("retrieval_qa", levels=[1, 2, 3, 4, 5, 6], tasks_per_level=60, heldout_per_level=30)
TASKS = by_level(ENV, 5)
SMALL = Library(
    [
        Document("Ann Reed", "employer Blue Fox; home East Port"),
        Document("Bob Reed", "employer Red Moon; home East Port"),
        Document("Blue Fox", "seat East Port; head Bob Reed"),
    ]
)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
async def test_the_oracle_scores_one_and_doing_nothing_zero(task: Task) -> None:
    assert ENV.oracle is not None
    solved = await play(ENV, task, ENV.oracle(task))
    assert (solved.reward, solved.parse_errors, any(record.error for record in solved.tools)) == (1.0, 0, False)
    assert (await play(ENV, task, [""])).reward == 0.0


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level {task.level}: {task.prompt}")
def test_the_result_is_what_the_prompt_asks_for(task: Task) -> None:
    assert read(str(task.prompt)) == task.data["result"]


@pytest.mark.parametrize("split", ["train", "heldout"])
async def test_every_document_that_the_oracle_reads_was_found_by_the_search_before(split: str) -> None:
    tasks = ENV.tasks("train" if split == "train" else "heldout")
    library = Library(corpus().documents)
    for task in tasks:
        for (_, search), (_, document) in zip(task.data["calls"][::2], task.data["calls"][1::2], strict=True):
            assert document["n"] in [n for n, _ in library.search(search["words"])]


def test_two_facts_nearly_always_find_whom_they_are_true_of_first() -> None:
    library = Library(corpus().documents)
    tasks = [task for task in ENV.tasks("train") if task.level in (2, 5)]
    searched = [(task.data["calls"][0][1]["words"], task.data["calls"][1][1]["n"]) for task in tasks]
    assert sum(library.search(words)[0][0] == n for words, n in searched) > 0.9 * len(tasks)


def test_a_name_finds_its_own_document_first() -> None:
    library = Library(corpus().documents)
    assert [name for name in corpus().numbers if library.search(name)[0] != (corpus().numbers[name], name)] == []


def test_a_search_names_the_best_documents_first_and_equal_ones_in_order() -> None:
    assert SMALL.search("head of Blue Fox") == [(3, "Blue Fox"), (1, "Ann Reed")]
    assert [n for n, _ in SMALL.search("home")] == [1, 2]
    assert SMALL.search("EMPLOYER, red moon!")[0] == (2, "Bob Reed")
    assert len(Library(corpus().documents).search("employer")) == HITS


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        (call("search", words=""), "nothing found"),
        (call("search", words="?!"), "nothing found"),
        (call("search", words="zebra"), "nothing found"),
        (call("read", n=0), "error: there is no document 0; search for its number, 1 to 654"),
        (call("read", n=-1), "error: there is no document -1; search for its number, 1 to 654"),
        (call("read", n=655), "error: there is no document 655; search for its number, 1 to 654"),
    ],
)
async def test_what_is_not_there_is_said(turn: Message, says: str) -> None:
    """Pain C1."""
    assert (await play(ENV, TASKS[0], [turn, "?"])).tools[0].output == says


async def test_an_endless_query_is_answered_like_its_beginning() -> None:
    long = " ".join(["Ann Adams"] * 5 + ["Tom Wood"] * 5000)
    start = " ".join(["Ann Adams"] * 5 + ["Tom Wood"] * 5)
    library = Library(corpus().documents)
    assert library.search(long) == library.search(start)


async def test_the_index_is_built_once_for_all_rollouts(monkeypatch: pytest.MonkeyPatch) -> None:
    import bm25s

    built: list[int] = []
    index = bm25s.BM25.index

    def counted(self: bm25s.BM25, documents: list[list[str]], **options: bool) -> None:
        built.append(len(documents))
        index(self, documents, **options)

    monkeypatch.setattr(bm25s.BM25, "index", counted)
    env = build("retrieval_qa", tasks_per_level=2, heldout_per_level=2)
    assert env.oracle is not None
    tasks = list(env.tasks("train"))
    played = await asyncio.gather(*(play(env, task, env.oracle(task)) for task in tasks for _ in range(2)))
    assert [trajectory.reward for trajectory in played] == [1.0] * 2 * len(tasks)
    assert built == [654]


async def test_only_the_bare_answer_counts() -> None:
    task = TASKS[0]
    right = task.data["result"]
    answers = {right: 1.0, f"{right}.": 1.0, right.upper(): 1.0, f"{right} or Ann Adams": 0.0, f"It is {right}": 0.0}
    for answer, reward in answers.items():
        assert (await play(ENV, task, [answer])).reward == reward


def test_no_held_out_question_is_about_what_is_trained_on() -> None:
    train, heldout = ({about(str(task.prompt)) for task in ENV.tasks(split)} for split in ("train", "heldout"))
    assert not train & heldout


def test_the_example_goes_as_far_as_the_questions() -> None:
    def searches(levels: list[int]) -> int:
        return sum(bool(message.tool_calls) for message in build("retrieval_qa", levels=levels).examples[0]) // 2

    assert (searches([1, 2]), searches([1, 3])) == (1, 2)


def about(prompt: str) -> str:
    """What a question starts from: a name, or the person with two facts, or two companies."""
    if found := re.search(r"(?:Who has|person with) (.*)\?", prompt):
        return described(found[1])
    if found := re.fullmatch(r"Who is older, the head of (.*) or the head of (.*)\?", prompt):
        return ", ".join(found.groups())
    found = re.search(r".* of ([^?]*)\?", prompt)
    assert found is not None
    return found[1]


def described(text: str) -> str:
    """The only person that two facts are true of, by their document."""
    one, other = text.split(" and ")
    texts = [d.text for d in corpus().documents if f" {one};" in f"{d.text};" and f" {other};" in f"{d.text};"]
    (only,) = [text for text in texts if "employer" in text]
    return only.partition(":")[0]


def read(prompt: str) -> str:
    """The answer, by reading the prompt and the documents; shares no code with what drew it."""
    facts = {}
    for document in corpus().documents:
        for relation in ("employer", "home", "friend", "birth year", "seat", "head", "product", "river", "mayor"):
            if found := re.search(rf"(?:: |; ){relation} ([^;]*)", document.text):
                facts[document.title, relation] = found[1]
    if found := re.fullmatch(r"Who is older, the head of (.*) or the head of (.*)\?", prompt):
        return min((facts[company, "head"] for company in found.groups()), key=lambda head: facts[head, "birth year"])
    if found := re.fullmatch(r"Who has (.*)\?", prompt):
        return described(found[1])
    found = re.fullmatch(r"What is the (.*) of (?:the person with (.*)|([^?]*))\?", prompt)
    if found is None or " of the person with " in prompt:
        found = re.fullmatch(r"What is the (.*) of the person with (.*)()\?", prompt)
    assert found is not None
    at = described(found[2]) if found[2] else found[3]
    for relation in reversed(found[1].split(" of the ")):
        at = facts[at, relation]
    return at
