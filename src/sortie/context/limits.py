"""What a rollout may use, and the signal that it used it up.

Three token limits are separate on purpose: one turn, one rollout, one row. Time has a limit per phase.
"""

from __future__ import annotations

from pydantic import Field

from sortie.core.config import Config
from sortie.core.errors import SortieError
from sortie.core.messages import Message
from sortie.core.trajectory import StopReason


class Limits(Config):
    """Limits of one rollout. How many turns it may take belongs to the agent."""

    turn_tokens: int = Field(128, ge=1)
    """Most tokens sampled in one turn."""
    rollout_tokens: int = Field(512, ge=1)
    """Most tokens sampled in one rollout, over all turns, threads and retried turns."""
    window: int = Field(2048, ge=2)
    """Most tokens of any row, prompt and sampled together."""
    seconds: float = Field(120.0, gt=0)
    """Wall clock of set-up and agent together; it starts when the leases are held."""
    lease_seconds: float = Field(300.0, gt=0)
    """How long a rollout may wait for its resources; queueing does not count against `seconds`."""
    setup_seconds: float = Field(30.0, gt=0)
    """Wall clock of the environment's set-up, and again of its tear-down."""
    score_seconds: float = Field(30.0, gt=0)
    """Wall clock of all rewards together."""
    tool_seconds: float = Field(20.0, gt=0)
    """Wall clock of one tool call, unless the tool declares its own."""


class LimitReached(SortieError):  # noqa: N818  # a limit is an outcome, not an error
    """A limit ended the rollout. It is recorded, scored and trained on like any other; an agent may catch it."""

    def __init__(self, reason: StopReason, what: str, message: Message | None = None) -> None:
        super().__init__(what)
        self.reason = reason
        """Which limit; always one whose `truncated` is true."""
        self.message = message
        """The turn that was cut short, where one was; its tokens are recorded."""
