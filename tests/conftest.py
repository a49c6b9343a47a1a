"""Its presence puts this folder on the path of every test, for the helpers beside it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """Folder of smollm2-135m, from the user's cache, fetched and converted the first time. Mark its tests `model`."""
    from sortie import models

    return models.resolve("smollm2-135m")
