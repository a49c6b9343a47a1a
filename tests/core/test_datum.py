"""One training row."""

from __future__ import annotations

import numpy as np
import pytest

from sortie.core.datum import Datum


def test_every_loss_input_has_one_entry_per_token() -> None:
    """Pain A4."""
    tokens = np.arange(3)
    Datum(tokens, {"weights": np.ones(3, np.float32)})
    with pytest.raises(ValueError, match="'weights' has shape"):
        Datum(tokens, {"weights": np.ones(2, np.float32)})
