"""What one rollout leaves: a forest of token nodes, and how it ended.

A root-to-leaf path is one training row. Each sampled node is trained in exactly one row: the first-created live leaf
below it. A node that was abandoned (a retried turn) trains nowhere. Ids and logprobs of a node always match in length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from sortie.core.messages import Message
from sortie.core.policy import PolicyVersion

NodeKind = Literal["prompt", "sampled", "observation"]


class StopReason(StrEnum):
    """Why a rollout ended. The first three reached an end; the limits were hit; the rest broke."""

    ANSWERED = "answered"
    """The agent gave its answer."""
    ENV_DONE = "env_done"
    """The environment said so."""
    AGENT_DONE = "agent_done"
    """The agent's loop returned without an answer."""
    TURN_LIMIT = "turn_limit"
    TURN_TOKENS = "turn_tokens"
    """One turn hit its token cap before its end-of-turn token."""
    ROLLOUT_TOKENS = "rollout_tokens"
    WINDOW = "window"
    """The next prompt would not fit the model's context window."""
    TIME = "time"
    ERROR = "error"
    ABORTED = "aborted"

    @property
    def terminated(self) -> bool:
        """It reached an end of its own."""
        return self in (StopReason.ANSWERED, StopReason.ENV_DONE, StopReason.AGENT_DONE)

    @property
    def truncated(self) -> bool:
        """It hit a limit: clean, scored and trainable, but not an end."""
        return not self.terminated and self not in (StopReason.ERROR, StopReason.ABORTED)


@dataclass(slots=True, kw_only=True)
class Node:
    """A run of tokens of one origin. `parent` is the id of the node it continues; None starts a row."""

    id: int
    parent: int | None
    kind: NodeKind
    token_ids: Sequence[int]
    agent: str = "main"
    logprobs: Sequence[float] | None = None
    """One per token for sampled nodes; None: the sampler gave none, so the node is untrainable."""
    version: PolicyVersion | None = None
    message: Message | None = None
    """The message these tokens spell, for reading; never the source of tokens."""
    abandoned: bool = False
    """Left behind by a retry: no row goes through it."""
    seconds: float = 0.0
    """How long sampling took; 0 for other kinds."""

    def __post_init__(self) -> None:
        if self.kind == "sampled" and self.logprobs is not None and len(self.logprobs) != len(self.token_ids):
            raise ValueError(f"node {self.id}: {len(self.token_ids)} ids but {len(self.logprobs)} logprobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One root-to-leaf path, flattened. All four have one entry per token."""

    token_ids: list[int]
    mask: list[int]
    """1 where the token was sampled and trains in this row."""
    logprobs: list[float]
    """The sampler's, where mask is 1; 0.0 elsewhere."""
    kinds: list[NodeKind]


@dataclass(slots=True, kw_only=True)
class ToolRecord:
    """One executed tool call: what was asked, what came back, how long it took."""

    name: str
    arguments: dict[str, Any]
    output: str
    error: bool = False
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class Trajectory:
    """The record of one rollout."""

    id: str
    task_key: str
    env: str
    member: int = 0
    """Index among its siblings."""
    nodes: list[Node] = field(default_factory=list)
    stop_reason: StopReason = StopReason.AGENT_DONE
    answer: str | None = None
    """The agent's final answer, where it gave one."""
    reward: float | None = None
    """Weighted sum of the rewards; None: not scored, kept out of every statistic."""
    rewards: dict[str, float | None] = field(default_factory=dict)
    """Each reward before its weight."""
    error: str | None = None
    boundary: str | None = None
    """Where the error crossed: tool, agent, env, reward, model, resource, budget."""
    tools: list[ToolRecord] = field(default_factory=list)
    parse_errors: int = 0
    """Turns whose tool call could not be read."""
    prefix_breaks: int = 0
    """Times a new row had to start because the template rewrote history."""
    cut_turns: int = 0
    """Turns that a token cap ended before their end-of-turn token; what was drawn is kept and trains."""
    tokens_unseen: int = 0
    """Prompt and observation tokens that no longer fitted a limit, so that the model never read them."""
    attempts: int = 1
    """Tries it took, infrastructure retries included."""
    seconds: float = 0.0

    def add(self, kind: NodeKind, token_ids: Sequence[int], parent: int | None, **fields: Any) -> Node:
        """Append a node and return it.

        Raises: ValueError if `parent` is not a node of this trajectory.
        """
        if parent is not None and not 0 <= parent < len(self.nodes):
            raise ValueError(f"no node {parent} in trajectory {self.id}")
        node = Node(id=len(self.nodes), parent=parent, kind=kind, token_ids=token_ids, **fields)
        self.nodes.append(node)
        return node

    @property
    def truncated(self) -> bool:
        """Whether a limit ended it."""
        return self.stop_reason.truncated

    @property
    def turns(self) -> int:
        """Sampled nodes that were not abandoned."""
        return sum(node.kind == "sampled" and not node.abandoned for node in self.nodes)

    @property
    def sampled_tokens(self) -> int:
        """Tokens the policy drew, abandoned ones included."""
        return sum(len(node.token_ids) for node in self.nodes if node.kind == "sampled")

    @property
    def untrainable_turns(self) -> int:
        """Sampled turns whose sampler gave no logprobs: they are context in every row."""
        return sum(node.kind == "sampled" and node.logprobs is None for node in self.nodes)

    def path(self, leaf: int) -> list[Node]:
        """Nodes from the root to `leaf`."""
        out, at = [], leaf
        while True:
            out.append(self.nodes[at])
            parent = self.nodes[at].parent
            if parent is None:
                return out[::-1]
            at = parent

    def rows(self) -> list[Row]:
        """Training rows in order of their leaves' creation. Rows with nothing to train are left out."""
        live = [node for node in self.nodes if not any(n.abandoned for n in self.path(node.id))]
        parents = {node.parent for node in live}
        claimed: set[int] = set()
        rows = []
        for leaf in live:
            if leaf.id not in parents:
                row = _flatten(self.path(leaf.id), claimed)
                if any(row.mask):
                    rows.append(row)
        return rows


def _flatten(path: list[Node], claimed: set[int]) -> Row:
    row = Row(token_ids=[], mask=[], logprobs=[], kinds=[])
    for node in path:
        n = len(node.token_ids)
        trains = node.kind == "sampled" and node.logprobs is not None and node.id not in claimed
        row.token_ids.extend(node.token_ids)
        row.kinds.extend([node.kind] * n)
        row.mask.extend([int(trains)] * n)
        row.logprobs.extend(node.logprobs if trains and node.logprobs is not None else [0.0] * n)
        if trains:
            claimed.add(node.id)
    return row
