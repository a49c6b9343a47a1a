from __future__ import annotations

from pathlib import Path

import pytest

from tiny_folder import make_tiny_folder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model's folder."""
    return make_tiny_folder(tmp_path_factory.mktemp("models") / "tiny")
