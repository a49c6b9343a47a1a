"""One training row, in the shape of the Tinker API: input tokens and named per-token arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32] | NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Datum:
    """`tokens` [T] go in; each of `loss_inputs` is [T], entry t about the prediction made after reading tokens[t].

    `target_tokens` and `weights` are always there; losses over a behaviour policy add `logprobs` and `advantages`.
    A weight of 0 keeps the position out of the loss entirely, whatever the other arrays hold there (NaN included).
    """

    tokens: NDArray[np.int64]
    loss_inputs: dict[str, Array]

    def __post_init__(self) -> None:
        for name, values in self.loss_inputs.items():
            if values.shape != self.tokens.shape:
                raise ValueError(f"loss input {name!r} has shape {values.shape}, the tokens {self.tokens.shape}")
