"""Adapters and their versions."""

from __future__ import annotations

import pytest

from sortie.core.config import parse
from sortie.core.errors import ConfigError
from sortie.core.policy import LoraConfig, PolicyVersion


def test_a_version_reads_as_adapter_and_number() -> None:
    assert str(PolicyVersion("main", 3, "abc")) == "main@3"


def test_equal_numbers_with_other_weights_are_other_versions() -> None:
    """Pain I1: what is compared is the digest too."""
    assert PolicyVersion("main", 3, "abc") != PolicyVersion("main", 3, "abd")


@pytest.mark.parametrize("bad", [{"rank": 0}, {"alpha": 0}, {"targets": []}, {"targets": ["lm_head"]}])
def test_a_shape_no_adapter_can_have_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        parse(LoraConfig, bad, source="lora")
