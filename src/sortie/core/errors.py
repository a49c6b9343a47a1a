"""Every error Sortie raises, and the boundary it crossed.

SortieError
├── UsageError            the caller asked for something that cannot be; shown as one line
│   ├── ConfigError       an option is unknown, ineffective or out of range
│   ├── UnknownName       a registry has no such name; the message lists the right ones
│   └── MissingExtra      an optional dependency is not installed; the message names the command
├── PrefixBreak           new rendering does not start with the tokens already sampled
├── TrainingError         a training step could not do what it promised
└── BoundaryError         a rollout went wrong at a named boundary
    ├── ToolError         a tool raised or hung (seen by the model as an observation)
    ├── AgentError        an agent's own code raised
    ├── EnvError          an environment's set-up, response or tear-down raised
    ├── RewardError       a reward raised or was not finite
    ├── ModelError        the sampler failed (retryable)
    ├── ResourceError     a lease could not be had (retryable)
    │   ├── LeaseTimeout
    │   └── UndeclaredResource   a tool leases what nobody declared (not retryable)
    └── BudgetError       a request larger than its window reached the sampler
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar


class SortieError(Exception):
    """Root of everything raised on purpose."""


class UsageError(SortieError):
    """The request itself cannot be served; the message says what to change."""


class ConfigError(UsageError):
    """An option is unknown, has no effect, or is out of range."""


class UnknownName(UsageError):
    """A name that a registry does not know."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        super().__init__(f"unknown {kind} {name!r}: {hint}known: {', '.join(names) or 'none'}")


class MissingExtra(UsageError):
    """An optional dependency is absent."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra that is not installed: pip install 'sortie-rl[{extra}]'")


class PrefixBreak(SortieError):
    """A chat template rewrote history, so the new prompt does not extend the tokens already there."""


class TrainingError(SortieError):
    """A training step could not do what it promised."""


class BoundaryError(SortieError):
    """A rollout went wrong; `boundary` names where."""

    boundary: ClassVar[str] = "unknown"
    retryable: ClassVar[bool] = False


class ToolError(BoundaryError):
    """A tool raised or hung."""

    boundary = "tool"


class AgentError(BoundaryError):
    """An agent's own code raised."""

    boundary = "agent"


class EnvError(BoundaryError):
    """An environment's set-up, response or tear-down raised."""

    boundary = "env"


class RewardError(BoundaryError):
    """A reward raised, or returned something that is not a finite number."""

    boundary = "reward"


class ModelError(BoundaryError):
    """The sampler failed to answer."""

    boundary = "model"
    retryable = True


class ResourceError(BoundaryError):
    """A resource could not be leased or broke while leased."""

    boundary = "resource"
    retryable = True


class LeaseTimeout(ResourceError):
    """No lease before the deadline."""


class UndeclaredResource(ResourceError):
    """A lease was asked for that no tool, reward or environment declares; the message names the declaration to add."""

    retryable = False


class BudgetError(BoundaryError):
    """A request is larger than the window it must fit."""

    boundary = "budget"


@contextmanager
def blame(error: type[BoundaryError], what: str) -> Iterator[None]:
    """Turn any exception raised inside into `error`, naming `what`; one that already names a boundary passes."""
    try:
        yield
    except SortieError:
        raise
    except Exception as cause:  # the boundary is exactly where foreign exceptions become ours
        raise error(f"{what} raised {type(cause).__name__}: {cause}") from cause
