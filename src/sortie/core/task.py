"""One problem, data only; and where collections of them come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, overload

from sortie.core.messages import Message, message_to_dict

Split = Literal["train", "heldout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One problem of one environment. Two tasks with equal content have equal keys, wherever they were made."""

    env: str
    """Name of the environment it belongs to."""
    prompt: str | tuple[Message, ...]
    """What the agent is asked: text for one user message, or a conversation to continue."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What tools and rewards need: answers, start states. Never shown to the model. JSON values only."""
    level: int | None = None
    """Difficulty grade, where the environment has grades."""
    id: str = ""
    """Declared id; empty: hash of the content."""

    @property
    def key(self) -> str:
        """`env/id`, unique over all environments of a run."""
        return f"{self.env}/{self.id or self.content_hash()}"

    def content_hash(self) -> str:
        """16 hex digits over prompt and data."""
        prompt = self.prompt if isinstance(self.prompt, str) else [message_to_dict(m) for m in self.prompt]
        content = json.dumps([prompt, dict(self.data)], sort_keys=True, default=str)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


class TaskSet(Protocol):
    """A finite, ordered collection of tasks, cheap to index; the same index is the same task for ever."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...
    def __iter__(self) -> Iterator[Task]: ...
