"""What is wanted: a resource described by value.

Specs with equal keys share one pool; specs that differ in anything never share an instance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Set as AbstractSet
from dataclasses import dataclass, fields
from inspect import isawaitable
from typing import Any, Generic, TypeVar, cast

from sortie.core.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ResourceSpec(ABC, Generic[T]):
    """Base of every spec: a frozen dataclass whose fields are its identity."""

    capacity: int = 1
    """Most instances alive at once in this process."""

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise ConfigError(f"{type(self).__name__}.capacity must be at least 1, got {self.capacity}")

    @property
    def key(self) -> str:
        """Identity: the class and every field, spelled the same however mappings and sets are ordered."""
        values = ", ".join(f"{f.name}={_spell(getattr(self, f.name))}" for f in fields(self) if f.compare)
        return f"{type(self).__module__}.{type(self).__qualname__}({values})"

    @property
    def label(self) -> str:
        """How messages name it."""
        return type(self).__name__

    @abstractmethod
    async def start(self) -> T:
        """Make a fresh instance. Whatever it raises becomes a ResourceError; when cancelled it must clean up."""

    async def stop(self, instance: T) -> None:  # most objects need nothing
        """Dispose of an instance."""

    async def reset(self, instance: T) -> bool:
        """Make a used instance as good as new. False (the default) or an exception: it is stopped and replaced."""
        return False


@dataclass(frozen=True, kw_only=True)
class ObjectSpec(ResourceSpec[T]):
    """A plain Python object made by a function: a connection, a simulator, a model of one's own."""

    name: str
    make: Callable[[], T | Awaitable[T]]
    """Makes one instance; may be async."""
    close: Callable[[T], object] | None = None
    """Disposes of one; may be async."""
    renew: Callable[[T], object] | None = None
    """Makes a used one as good as new; may be async. None: every lease gets a fresh object."""

    @property
    def label(self) -> str:
        """The name it was given."""
        return self.name

    async def start(self) -> T:
        """Call `make`."""
        made = self.make()
        return cast(T, await made) if isawaitable(made) else made

    async def stop(self, instance: T) -> None:
        """Call `close`, where there is one."""
        if self.close is not None:
            await _settled(self.close(instance))

    async def reset(self, instance: T) -> bool:
        """Call `renew`, where there is one."""
        if self.renew is None:
            return False
        await _settled(self.renew(instance))
        return True


async def _settled(value: object) -> None:
    if isawaitable(value):
        await value


def _spell(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{_spell(k)}: {_spell(v)}" for k, v in value.items())) + "}"
    if isinstance(value, AbstractSet):
        return "{" + ", ".join(sorted(_spell(v) for v in value)) + "}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(_spell, value))})"
    return repr(value)
