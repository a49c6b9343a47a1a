"""The right to use one instance, and what one rollout holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from sortie.core.errors import UndeclaredResource
from sortie.resources.spec import ResourceSpec

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Lease(Generic[T]):
    """One place in a pool, from its grant to its return. `instance` is there once it has started."""

    spec: ResourceSpec[T]
    holder: str
    instance: T | None = None
    started: bool = False
    """Whether `instance` may be used."""
    returned: bool = False


class Leases:
    """What one rollout holds: one lease per spec."""

    def __init__(self, leases: Sequence[Lease[Any]] = ()) -> None:
        self._leases = tuple(leases)

    def __iter__(self) -> Iterator[Lease[Any]]:
        return iter(self._leases)

    def __len__(self) -> int:
        return len(self._leases)

    def find(self, wanted: ResourceSpec[T] | type[ResourceSpec[T]]) -> T:
        """The instance of a spec, or of the only held spec of a type.

        Raises: UndeclaredResource if none is held, if several are of that type, or if it was returned.
        """
        if isinstance(wanted, ResourceSpec):
            found, name = [lease for lease in self._leases if lease.spec.key == wanted.key], wanted.key
        else:
            found, name = [lease for lease in self._leases if isinstance(lease.spec, wanted)], wanted.__name__
        if not found:
            held = ", ".join(lease.spec.label for lease in self._leases) or "nothing"
            raise UndeclaredResource(
                f"nothing declares {name} (held: {held}); "
                "add it to @tool(needs=...), @reward(needs=...) or Env(resources=[...])"
            )
        if len(found) > 1:
            keys = "; ".join(lease.spec.key for lease in found)
            raise UndeclaredResource(f"{len(found)} specs of type {name} are held; lease one by its spec: {keys}")
        if found[0].returned:
            raise UndeclaredResource(f"the lease of {name} was returned when its rollout ended")
        return cast(T, found[0].instance)
