"""What sandbox is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sortie.core.errors import ConfigError
from sortie.resources.spec import ResourceSpec

if TYPE_CHECKING:
    from sortie.resources.kinds.sandbox.sandbox import Sandbox

Isolation = Literal["auto", "bubblewrap", "namespaces", "none"]

LEAST_MEMORY_MB = 32
"""Below this the interpreter itself does not start."""


@dataclass(frozen=True, kw_only=True)
class SandboxSpec(ResourceSpec["Sandbox"]):
    """An isolated place to run code. Every lease gets a fresh one: a used sandbox is replaced, never cleaned."""

    capacity: int = 16
    """Most sandboxes of this spec alive at once in this process."""
    memory_mb: int = 512
    """Memory of all processes together, and address space of each one."""
    cpu_seconds: float = 30.0
    """Processor time of one command, all of its processes together."""
    cores: int | None = None
    """Cores its processes may use; None: all that this process may."""
    processes: int = 64
    """Processes and threads at once."""
    file_mb: int = 16
    """Largest single file."""
    disk_mb: int = 64
    """All files together. They are held in memory, on top of `memory_mb`."""
    wall_s: float = 10.0
    """Longest time for one command; its default and its upper bound."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables beside PATH, HOME, TMPDIR and LANG. Nothing comes from the host."""
    network: Literal[False] = False
    """There is none, not even a loopback that anything answers on."""
    isolation: Isolation = "auto"
    """auto: bubblewrap where it works, else namespaces, else refused. none: limits only, no protection whatever."""
    keep_state: bool = False
    """Whether what one `python` call defines is there in the next, by default."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.network:
            raise ConfigError("SandboxSpec.network must be False: sandboxes have no network")
        if self.memory_mb < LEAST_MEMORY_MB:
            raise ConfigError(f"SandboxSpec.memory_mb must be at least {LEAST_MEMORY_MB}, got {self.memory_mb}")
        for name in ("cpu_seconds", "processes", "file_mb", "disk_mb", "wall_s"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"SandboxSpec.{name} must be positive, got {getattr(self, name)}")
        if self.cores is not None and self.cores < 1:
            raise ConfigError(f"SandboxSpec.cores must be at least 1, got {self.cores}")
        if self.isolation not in ("auto", "bubblewrap", "namespaces", "none"):
            raise ConfigError(
                f"SandboxSpec.isolation must be auto, bubblewrap, namespaces or none, got {self.isolation!r}"
            )

    async def start(self) -> Sandbox:
        """Start one; refused with the reasons where the machine offers no isolation."""
        from sortie.resources.kinds.sandbox.sandbox import Sandbox

        return await Sandbox.start(self)

    async def stop(self, instance: Sandbox) -> None:
        """End it with everything that runs in it."""
        await instance.close()
