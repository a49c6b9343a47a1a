"""One thing that was looked at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "warn", "fail"]
_ORDER: tuple[Status, ...] = ("fail", "warn", "ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What was looked at, how it stands, and what to do about it."""

    name: str
    status: Status
    finding: str
    """What was found, with its values."""
    remedy: str = ""
    """One line of advice; empty where there is nothing to do."""
    cost: float = 0.0
    """Share of the run's effort that it costs, where that can be said."""

    def to_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return asdict(self)


def most_costly_first(checks: Iterable[Check]) -> list[Check]:
    """Failures, then warnings, then what is well; each kind by cost, otherwise as they came."""
    return sorted(checks, key=lambda check: (_ORDER.index(check.status), -check.cost))
