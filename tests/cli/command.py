"""How the tests call `sortie`, and what they train."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sortie.cli.main import main

Command = Callable[..., tuple[int, str, str]]

WORLD = '''
import sortie


@sortie.tool(inline=True)
def shout(text: str) -> str:
    """Say `text` in capitals."""
    return text.upper()


@sortie.reward(inline=True)
def low(trajectory: sortie.Trajectory) -> float:
    """Differs between any two rollouts of a random model, so that every group trains."""
    drawn = [token for node in trajectory.nodes if node.kind == "sampled" for token in node.token_ids]
    return sum(token < 128 for token in drawn[:-1]) + 1 / (1 + drawn[-1]) if drawn else 0.0


def solve(task):
    return [sortie.assistant("yes")]


env = sortie.Env(
    "echo", tasks=[{"prompt": f"say {i}"} for i in range(40)], tools=[shout], rewards=[low], oracle=solve
)
'''

RUN_FILE = """
model = "./tiny"
steps = 2
[rollouts]
groups = 2
group_size = 2
[rollouts.limits]
turn_tokens = 8
rollout_tokens = 16
[lora]
rank = 2
[scheduler]
name = "envsched"
[eval]
tasks = 4
[[env]]
name = "cli_world:env"
"""


def run_command(*arguments: str | Path) -> int:
    """Exit code of one command."""
    return main([str(argument) for argument in arguments])
