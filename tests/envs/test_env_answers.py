from __future__ import annotations

import pytest

from sortie.envs.answers import same


@pytest.mark.parametrize("answer", ["Rome", " rome\n", "ROME."])
def test_case_blanks_and_a_full_stop_make_no_difference(answer: str) -> None:
    assert same(answer, "Rome")


@pytest.mark.parametrize("answer", [None, "", ".", "Rome or Paris", "It is Rome", "Rome..", "Rom"])
def test_anything_beside_the_answer_makes_it_wrong(answer: str | None) -> None:
    """Pain D1."""
    assert not same(answer, "Rome")
