"""Tools: plain typed functions that a model may call.

The signature is the schema and the docstring is the prompt. A call always comes back within its time limit: what goes
wrong is told to the model as an observation, except failures of the infrastructure, which end this rollout's attempt.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, overload

from pydantic import BaseModel
from pydantic_core import to_json

from sortie.agents.signature import CONTEXT, Arguments
from sortie.agents.threads import in_thread
from sortie.context.run_context import RunContext
from sortie.context.tools import ToolOutcome
from sortie.core.errors import SortieError, ToolError
from sortie.core.tool_schema import ToolSchema
from sortie.resources.spec import ResourceSpec

P = ParamSpec("P")
R = TypeVar("R")
Needs = ResourceSpec[Any] | Sequence[ResourceSpec[Any]] | None

log = logging.getLogger("sortie")


class Tool(Generic[P, R]):
    """A function that a model may call; calling the Tool itself calls the plain function, for unit tests."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        needs: Needs = None,
        timeout_s: float | None = None,
        inline: bool = False,
    ) -> None:
        """Raises: ConfigError, in one line, if a model could not call this function."""
        functools.update_wrapper(self, function)
        self._function = function
        self._arguments = Arguments(function, name or function.__name__)
        self._is_async = inspect.iscoroutinefunction(function)
        self._logged: set[type[BaseException]] = set()
        self.needs = as_needs(needs)
        self.timeout_s = timeout_s
        """Seconds one call may take; None: the rollout's `tool_seconds`."""
        self.inline = inline
        """Run a sync function on the event loop: for pure functions that return at once, as no time limit can hold."""

    @property
    def schema(self) -> ToolSchema:
        """What the model is told."""
        return self._arguments.schema

    @property
    def name(self) -> str:
        """The name the model calls it by."""
        return self.schema.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The plain function."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.schema.signature()})"

    async def call(self, ctx: RunContext, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Check the arguments and run the function within its time limit.

        Raises: SortieError other than ToolError, of infrastructure (resource, model) and limits; nothing else.
        """
        try:
            values = self._arguments.check(arguments)
        except ValueError as error:
            return ToolOutcome(f"error: {error}; call it as {self.schema.signature()}", error=True)
        if self._arguments.takes_context:
            values[CONTEXT] = ctx
        seconds = self.timeout_s if self.timeout_s is not None else ctx.limits.tool_seconds
        try:
            async with asyncio.timeout(seconds) as scope:
                return ToolOutcome(as_text(await self._run(values)))
        except ToolError as error:
            return ToolOutcome(f"error: {error}", error=True)
        except SortieError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a tool may raise anything; the model reads it and may do better
            if isinstance(error, TimeoutError) and scope.expired():
                text = f"error: {self.name} did not finish within {seconds:g} s; ask for less, or go on without it"
                return ToolOutcome(text, error=True)
            self._log_once(error)
            return ToolOutcome(f"error: {self.name} raised {type(error).__name__}: {error}", error=True)

    async def _run(self, values: dict[str, Any]) -> Any:
        if self._is_async or self.inline:
            value = self._function(**values)  # type: ignore[call-arg]
            return await value if inspect.isawaitable(value) else value
        return await in_thread(functools.partial(self._function, **values))

    def _log_once(self, error: BaseException) -> None:
        if type(error) not in self._logged:
            self._logged.add(type(error))
            log.warning("tool %r raised; later ones of this kind are not logged", self.name, exc_info=error)


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *, name: str | None = None, needs: Needs = None, timeout_s: float | None = None, inline: bool = False
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    needs: Needs = None,
    timeout_s: float | None = None,
    inline: bool = False,
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a function callable by the model: `@tool`, or `@tool(needs=..., timeout_s=..., name=..., inline=...)`.

    A parameter named `ctx` receives the RunContext and is hidden. A sync function runs in a thread unless `inline`.
    Raises: ConfigError at definition if a parameter is untyped, variadic or positional-only.
    """
    if function is not None:
        return Tool(function)
    return lambda target: Tool(target, name=name, needs=needs, timeout_s=timeout_s, inline=inline)


def as_needs(needs: Needs) -> tuple[ResourceSpec[Any], ...]:
    """One spec, several or none, as a tuple."""
    if needs is None:
        return ()
    return (needs,) if isinstance(needs, ResourceSpec) else tuple(needs)


def as_text(value: Any) -> str:
    """What a tool returned, as the model reads it: text as it is, None as "ok", data as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return "ok"
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if isinstance(value, bool | int | float | dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=lambda item: json.loads(to_json(item, fallback=str)))
    return str(value)
