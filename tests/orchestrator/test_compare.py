"""Runs side by side."""

from __future__ import annotations

from pathlib import Path

from stored_run import rollout, stored

from sortie.orchestrator.compare import compare, flattened

SCORE = {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 10}


def test_only_settings_that_differ_are_shown_absent_ones_included(tmp_path: Path) -> None:
    one = stored(tmp_path, [[rollout()]], "one", 'seed = 0\nsteps = 2\n[optim]\nlr = 1e-4\n[[env]]\nname = "shop"\n')
    two = stored(tmp_path, [[rollout()]], "two", 'seed = 0\nsteps = 3\n[optim]\nlr = 1e-4\n[[env]]\nname = "bank"\n')
    assert compare([one, two]).settings == {
        "steps": {"one": 2, "two": 3},
        "env.shop": {"one": "yes", "two": "-"},
        "env.bank": {"one": "-", "two": "yes"},
    }


def test_an_environment_goes_by_its_name_not_its_place() -> None:
    tables = [{"name": "a", "levels": [1]}, {"name": "b", "levels": [2]}]
    assert flattened({"env": tables}) == flattened({"env": tables[::-1]})
    assert flattened({"env": tables})["env.b.levels"] == [2]


def test_results_come_from_the_summary_or_from_what_was_measured_so_far(tmp_path: Path) -> None:
    done = stored(tmp_path, [[rollout()]], "done")
    done.write_summary({"wall_s": 9.0, "before": None, "after": {"pooled": SCORE}})
    going = stored(tmp_path, [[rollout()]], "going")
    going.append_event("evaluation", phase="before", step=0, pooled=SCORE)
    going.close()
    results = compare([done, going]).results
    assert results["done"] == {
        "status": "finished",
        "steps": 1,
        "wall_s": 9.0,
        "before": None,
        "after": {"pooled": SCORE},
    }
    assert (results["going"]["status"], results["going"]["before"], results["going"]["after"]) == (
        "interrupted",
        {"pooled": SCORE},
        None,
    )
