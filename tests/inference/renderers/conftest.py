"""Fixtures over the tokenizers of renderer_tokenizers.py."""

from __future__ import annotations

import pytest
from renderer_tokenizers import RENDERERS, MakeTokenizer, build

from sortie.inference.renderers.base import Renderer


@pytest.fixture(scope="session")
def make_tokenizer() -> MakeTokenizer:
    """Builds a ChatML tokenizer with a given template."""
    return build


@pytest.fixture(scope="session", params=RENDERERS)
def renderer(request: pytest.FixtureRequest) -> Renderer:
    """Each shipped renderer, each of its habits."""
    return RENDERERS[request.param]()
