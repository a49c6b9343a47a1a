"""The two relations, built as things arrive."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sortie.scheduling import EnvironmentRecord, TaskRecord, build
from sortie.scheduling.clusters import Clusters
from sortie.scheduling.graph import Graph


def record(environment: str, i: int, text: str = "", **features: float) -> TaskRecord:
    return TaskRecord(key=f"{environment}/{text}{i}", environment=environment, text=text, features=features or None)


def test_environments_with_the_same_tools_and_a_like_description_are_of_one_family() -> None:
    graph = Graph(max_patterns=8)
    graph.describe(
        [
            EnvironmentRecord(name="a", description="Query a database of books.", tools=("sql", "schema")),
            EnvironmentRecord(name="b", description="Query a database of trains.", tools=("sql", "schema")),
            EnvironmentRecord(name="c", description="Move through a world of rooms.", tools=("go", "look")),
        ]
    )
    family = graph.factors().family
    assert family[0] == family[1] != family[2]


def test_what_one_environment_taught_is_passed_on_within_its_family() -> None:
    described = [
        EnvironmentRecord(name=name, description=about, tools=tools)
        for name, about, tools in (
            ("a", "Query books.", ("sql",)),
            ("b", "Query books.", ("sql",)),
            ("c", "Walk about.", ("go",)),
        )
    ]
    records = [record(name, i) for name in "abc" for i in range(10)]
    scheduler = build("envsched", records, environments=described, strengths={"family": 2.0}, trials=0)
    from sortie.scheduling import GroupResult

    for i in range(6):
        scheduler.observe([GroupResult(key=f"a/{i}", assignment=-1, rewards=(0.0,) * 8)])
    near, far = scheduler.predict(["b/9", "c/9"]).mean
    assert near < far - 0.05


def test_given_features_come_before_text_and_share_hints_across_environments() -> None:
    graph = Graph(max_patterns=8)
    records = [record("a", 0, "same", level=1), record("b", 1, "same", level=1), record("a", 2, "same", level=2)]
    environment, hint, cell = graph.place([*records, record("a", 3, "same")])
    assert environment.tolist() == [0, 1, 0, 0]
    assert hint[0] == hint[1]
    assert len(set(hint.tolist())) == 3
    assert len(set(cell.tolist())) == 4


def test_like_patterns_are_closer_than_unlike_ones() -> None:
    clusters = Clusters(8)
    clusters.assign(np.array([[0.0, 0.0], [0.3, 0.0], [1.0, 1.0]], dtype=np.float32))
    likeness = clusters.likeness()
    assert np.diag(likeness) == pytest.approx(1.0)
    order = np.argsort(likeness, axis=None)[:-3]  # without the diagonal
    assert np.linalg.eigvalsh(likeness).min() > 0
    assert likeness.ravel()[order[-1]] > 2 * likeness.ravel()[order[0]]


def test_a_saved_graph_places_the_same_tasks_alike_whatever_their_order() -> None:
    records = [record(f"e{i % 3}", i, f"kind {'xyz'[i % 3]} and {'pqrs'[i % 4]}") for i in range(24)]
    graph = Graph(max_patterns=16)
    before = graph.place(records)
    again = Graph(max_patterns=16)
    again.load_state_dict(json.loads(json.dumps(graph.state_dict())))
    for old, new in zip(before, again.place(records[::-1]), strict=True):
        assert old.tolist() == new[::-1].tolist()


def test_cells_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sortie.scheduling.graph.CELLS", 3)
    graph = Graph(max_patterns=16)
    _, _, cell = graph.place([record("a", i, level=i) for i in range(10)])
    assert len(set(cell.tolist())) == 4  # three of their own, one for the rest of the environment
