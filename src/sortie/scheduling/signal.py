"""What a group is expected to teach: moments of the learning signal under a Gaussian posterior of the logit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True, slots=True)
class Outlook:
    """Expectations over what is known of each pair's success p; one entry per pair."""

    mean: Floats
    """E[p]."""
    mean_sd: Floats
    """Standard deviation of p: how little is known."""
    variance: Floats
    """E[p (1 - p)]: the expected variance of a binary reward (for p ~ Beta(a, b) it would be ab / ((a+b)(a+b+1)))."""
    variance_sd: Floats
    chance: Floats
    """E[1 - p^n - (1 - p)^n]: the chance that n binary rewards are not all equal."""
    chance_sd: Floats


def outlook(mean: Floats, var: Floats, n: int) -> Outlook:
    """Integrate over logit(p) ~ N(mean, var) by Gauss-Hermite quadrature with 16 nodes.

    Errors of the expectations stay below 0.01 for standard deviations to 3 and n to 32.
    """
    f = mean + np.sqrt(var) * _NODES[:, None]
    log_fail = -np.logaddexp(0.0, f)
    log_pass = log_fail + f
    p = np.exp(log_pass)
    signal = p * np.exp(log_fail)
    chance = 1.0 - np.exp(n * log_pass) - np.exp(n * log_fail)
    return Outlook(*_moments(p), *_moments(signal), *_moments(chance))


def _moments(values: Floats) -> tuple[Floats, Floats]:
    mean = _WEIGHTS @ values
    return mean, np.sqrt(np.maximum(_WEIGHTS @ values**2 - mean**2, 0.0))
