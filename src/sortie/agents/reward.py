"""Rewards: plain functions that score a rollout. None means "not scored", never 0."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, overload

from sortie.agents.threads import in_thread
from sortie.agents.tool import Needs, as_needs
from sortie.context.run_context import RunContext
from sortie.core.errors import ConfigError, RewardError, blame
from sortie.core.task import Task
from sortie.core.trajectory import Trajectory

P = ParamSpec("P")
R = TypeVar("R")

RESERVED = ("task", "trajectory", "state", "ctx", "answer")
"""Names that always mean the rollout's own objects; `answer` is what the agent answered."""


class Reward(Generic[P, R]):
    """A scoring function and its weight; calling it calls the plain function."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        weight: float = 1.0,
        name: str | None = None,
        needs: Needs = None,
        inline: bool = False,
    ) -> None:
        """Raises: ConfigError if the function takes *args or **kwargs, or the weight is not finite."""
        functools.update_wrapper(self, function)
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function)
        self.name = name or function.__name__
        self.weight = weight
        """Factor in the rubric's sum; 0: only recorded."""
        self.needs = as_needs(needs)
        self.inline = inline
        """Run a sync function on the event loop: for pure functions that return at once."""
        self._parameters = inspect.signature(function).parameters
        if not math.isfinite(weight):
            raise ConfigError(f"reward {self.name!r}: weight must be finite, got {weight}")
        for parameter in self._parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise ConfigError(f"reward {self.name!r}: parameter {parameter.name!r} must be an ordinary named one")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The plain function."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Reward({self.name!r}, weight={self.weight:g})"

    async def value(self, task: Task, trajectory: Trajectory, ctx: RunContext) -> float | None:
        """Score one rollout; arguments are injected by name.

        Raises: RewardError if it raised, asks for something that is not there, or returned no finite number.
        """
        given = {"task": task, "trajectory": trajectory, "state": ctx.state, "ctx": ctx, "answer": trajectory.answer}
        arguments = self._inject(task.data, given)
        with blame(RewardError, f"reward {self.name!r}"):
            raw = await self._run(arguments)
        return self._finite(raw)

    def _inject(self, data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        arguments = {}
        for name, parameter in self._parameters.items():
            if name in given:
                arguments[name] = given[name]
            elif name in data:
                arguments[name] = data[name]
            elif parameter.default is parameter.empty:
                known = ", ".join([*RESERVED, *data])
                raise RewardError(f"reward {self.name!r} asks for {name!r}; it can have: {known}")
        return arguments

    async def _run(self, arguments: dict[str, Any]) -> Any:
        if self._is_async or self.inline:
            value = self._function(**arguments)  # type: ignore[call-arg]
            return await value if inspect.isawaitable(value) else value
        return await in_thread(functools.partial(self._function, **arguments))

    def _finite(self, raw: Any) -> float | None:
        if raw is None:
            return None
        try:
            number = float(raw) if not isinstance(raw, str | bytes) else math.nan
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise RewardError(f"reward {self.name!r} returned {raw!r}; it must return a finite number, a bool or None")
        return number


@overload
def reward(function: Callable[P, R], /) -> Reward[P, R]: ...
@overload
def reward(
    *, weight: float = 1.0, name: str | None = None, needs: Needs = None, inline: bool = False
) -> Callable[[Callable[P, R]], Reward[P, R]]: ...
def reward(
    function: Callable[P, R] | None = None,
    /,
    *,
    weight: float = 1.0,
    name: str | None = None,
    needs: Needs = None,
    inline: bool = False,
) -> Reward[P, R] | Callable[[Callable[P, R]], Reward[P, R]]:
    """Make a function a reward: `@reward`, or `@reward(weight=..., needs=..., name=..., inline=...)`.

    Its parameters are filled in by name: task, trajectory, state, ctx, answer (the agent's), or any key of task.data.
    It returns a number, a bool, or None for "not scored".
    """
    if function is not None:
        return Reward(function)
    return lambda target: Reward(target, weight=weight, name=name, needs=needs, inline=inline)
