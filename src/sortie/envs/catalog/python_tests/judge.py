"""Run what the agent wrote on hidden inputs and compare the results here, outside its sandbox.

Only the code and the inputs go in, and only values in JSON come out. What the code prints, patches, reads or leaves
behind in there cannot help it: nothing in there knows what is expected.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sortie.agents.reward import reward
from sortie.context.run_context import RunContext
from sortie.core.trajectory import Trajectory
from sortie.resources.kinds.sandbox.spec import SandboxSpec

if TYPE_CHECKING:
    from sortie.resources.kinds.sandbox.sandbox import Sandbox

SANDBOX = SandboxSpec(memory_mb=128, disk_mb=8, processes=16, wall_s=5.0, cpu_seconds=5.0)

DRIVER = """
import json, os, sys
work = json.load(sys.stdin)
out = os.dup(1)
quiet = os.open(os.devnull, os.O_WRONLY)
os.dup2(quiet, 1)
os.dup2(quiet, 2)
space = {"__name__": "solution"}
exec(compile(work["code"], "solution.py", "exec"), space)
results = [space["f"](argument) for argument in work["inputs"]]
os.write(out, json.dumps(results).encode())
"""
"""What the solution prints goes nowhere, so that an honest one may print."""


@reward
async def passes(state: list[str], cases: Sequence[Sequence[Any]], ctx: RunContext, trajectory: Trajectory) -> float:
    """1 if the agent ended by itself and its last code is right on every hidden case, else 0."""
    if not state or not trajectory.stop_reason.terminated:
        return 0.0
    results = await results_of(ctx.lease(SANDBOX), state[-1], [argument for argument, _ in cases])
    return float(results is not None and _same(results, [wanted for _, wanted in cases]))


async def results_of(sandbox: Sandbox, code: str, inputs: Sequence[Any]) -> Any:
    """What `code` says its function f gives for each input; None if it does not come to that.

    Raises: ResourceError if the sandbox itself broke.
    """
    work = json.dumps({"code": code, "inputs": list(inputs)})
    ran = await sandbox.run(["python", "-I", "-S", "-c", DRIVER], stdin=work)
    if ran.exit_code or ran.killed_reason is not None:
        return None
    try:
        return json.loads(ran.output)
    except (ValueError, RecursionError):  # it wrote something else, or nests too deeply
        return None


def _same(results: Any, wanted: Any) -> bool:
    """Equal in value and kind: True is not 1, nor is 1.0."""
    return json.dumps(results) == json.dumps(wanted)
