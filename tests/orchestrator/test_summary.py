from __future__ import annotations

import json
from pathlib import Path

from small_run import config

from sortie.core.policy import PolicyVersion
from sortie.orchestrator.evaluate import score_of
from sortie.orchestrator.summary import Summary

SCORES = {"letters": score_of([0.0, 1.0]), "pooled": score_of([0.0, 1.0])}


def test_a_summary_is_plain_json(tmp_path: Path) -> None:
    policy = PolicyVersion("policy", 2, "ab")
    data = json.loads(json.dumps(Summary.of(tmp_path, config(tmp_path), SCORES, SCORES, 12.345, policy).to_dict()))
    assert set(data["before"]) == set(data["after"]) == {"letters", "pooled"}
    assert set(data["after"]["pooled"]) == {"mean", "low", "high", "n"}
    assert (data["wall_s"], data["policy"]["version"]) == (12.35, 2) or data["wall_s"] == 12.34
    assert {"python", "torch", "sortie-rl"} <= set(data["versions"])


def test_without_an_evaluation_before_there_is_no_before(tmp_path: Path) -> None:
    summary = Summary.of(tmp_path, config(tmp_path), None, SCORES, 1.0, PolicyVersion("policy", 0, "ab"))
    assert summary.to_dict()["before"] is None
    assert summary.lines() == ["letters 0.500", "pooled 0.500"]
