"""The guest: answers the first thing that is asked, one thing a time, and may change a wish once.

Its answers follow from the task and the words of the question alone, so that equal conversations go on equally.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sortie.context.run_context import Response, RunContext
from sortie.core.messages import Message
from sortie.envs.catalog.booking.desk import Desk

_ASKS = {
    "day": re.compile(r"\b(day|date)\b"),
    "time": re.compile(r"\b(time|hour|clock)\b"),
    "n": re.compile(r"\b(many|people|guests|persons|size)\b"),
}
_NUMBER = re.compile(r"\d+")


def respond(ctx: RunContext, message: Message) -> Response:
    """An answer to a question; to anything else what has changed, once; then nothing."""
    desk: Desk = ctx.state
    if "?" in message.content:
        return answer(message.content.lower(), ctx.task.data)
    change: str = ctx.task.data["change"]
    if not change or desk.asked_again:
        return None
    desk.asked_again = True
    return change


def answer(question: str, data: Mapping[str, Any]) -> str:
    """What the guest says to a question in lower case."""
    if numbers := _NUMBER.findall(question):  # times are offered
        liked = [time for time in (data["wish"]["time"], data["second"]) if str(time) in numbers]
        return f"{liked[0]}." if liked else "No."
    asked = sorted((found.start(), key) for key, pattern in _ASKS.items() if (found := pattern.search(question)))
    return f"{data['wish'][asked[0][1]]}." if asked else "Pardon?"
