"""EnvSched with parts taken out, by the options of its Config. A relation of 0.01 logits relates nothing.

That every group has the same number of rollouts is the default; the counterpart has the better groups made larger.
"""

from __future__ import annotations

_ENVIRONMENTS = ("family", "environment")
_PATTERNS = ("hint", "pattern")


def _without(*relations: str) -> str:
    return "envsched" + "".join(f":strengths.{name}=0.01" for name in relations)


ABLATIONS = {
    "envsched, no graph": _without(*_ENVIRONMENTS, *_PATTERNS, "cell"),
    "envsched, environments only": _without(*_PATTERNS, "cell"),
    "envsched, patterns only": _without(*_ENVIRONMENTS, "cell"),
    "envsched, no coverage": "envsched:coverage=0:spread=0:least_share=0",
    "envsched, nothing fitted": "envsched:trials=0",
    "envsched, unequal groups": "envsched:stretch=2",
}
"""What a table calls it, to its label."""
