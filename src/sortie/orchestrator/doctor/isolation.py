"""Where code that an agent wrote can run on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sortie.envs import Env
from sortie.orchestrator.doctor.check import Check, Status

NAME = "isolation"


async def isolation_checks(envs: Sequence[Env] = ()) -> list[Check]:
    """Start one sandbox each way there is; without any, environments that need one fail."""
    from sortie.resources.kinds.sandbox.launch import available

    return [judged(await available(), sandboxed(envs))]


def sandboxed(envs: Sequence[Env]) -> list[str]:
    """Names of the environments that need an isolated place."""
    from sortie.resources.kinds.sandbox.spec import SandboxSpec

    return [
        env.name
        for env in envs
        if any(isinstance(spec, SandboxSpec) and spec.isolation != "none" for spec in env.needs)
    ]


def judged(ways: Mapping[str, str | None], needed_by: Sequence[str]) -> Check:
    """`ways` maps each way to isolate to None where it works, else to why it does not."""
    working = [way for way, reason in ways.items() if reason is None]
    broken = "; ".join(f"{way}: {reason}" for way, reason in ways.items() if reason is not None)
    if working:
        finding = f"sandboxes are isolated by {working[0]}" + (f" (not by {broken})" if broken else "")
        return Check(name=NAME, status="ok", finding=finding)
    status: Status = "fail" if needed_by else "warn"
    finding = f"no sandbox can be isolated here ({broken})"
    if needed_by:
        finding += f", and {', '.join(needed_by)} need one"
    remedy = "install bubblewrap and allow user namespaces; isolation = 'none' runs an agent's code unprotected"
    return Check(name=NAME, status=status, finding=finding, remedy=remedy)
