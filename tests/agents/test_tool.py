from __future__ import annotations

import asyncio
import threading
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from sortie.agents.threads import abandoned_threads
from sortie.agents.tool import Tool, tool
from sortie.context.limits import LimitReached, Limits
from sortie.context.run_context import RunContext
from sortie.core.errors import ConfigError, ResourceError, ToolError
from sortie.core.trajectory import StopReason
from sortie.resources.spec import ObjectSpec
from toy import toy_context


class Address(BaseModel):
    street: str
    title: str = "Dr"


@tool
def book(
    ctx: RunContext,
    city: str,
    nights: int,
    price: float = 10.5,
    kind: Literal["single", "double"] = "single",
    pets: bool = False,
    guests: list[str] | None = None,
    extras: dict[str, int] | None = None,
    address: Address | None = None,
) -> dict[str, Any]:
    """Book a room.

    Costs money.

    Args:
        city: Where to
            stay.
        nights: How many nights.
    """
    return {"city": city, "nights": nights, "price": price, "member": ctx.member, "pets": pets, "guests": guests}


def test_the_signature_is_the_schema_and_the_docstring_the_prompt() -> None:
    schema = book.schema
    assert (schema.name, schema.description) == ("book", "Book a room.\n\nCosts money.")
    properties = schema.parameters["properties"]
    assert list(properties) == ["city", "nights", "price", "kind", "pets", "guests", "extras", "address"]
    assert properties["city"] == {"type": "string", "description": "Where to stay."}
    assert properties["nights"] == {"type": "integer", "description": "How many nights."}
    assert properties["price"] == {"type": "number", "default": 10.5}
    assert properties["kind"] == {"enum": ["single", "double"], "type": "string", "default": "single"}
    assert properties["guests"]["anyOf"] == [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]
    assert schema.parameters["required"] == ["city", "nights"]
    assert "title" in schema.parameters["$defs"]["Address"]["properties"], "a property called title is kept"


def test_a_tool_is_still_the_plain_function() -> None:
    @tool(name="sum")
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    assert add(1, 2) == 3
    assert add.name == "sum"
    assert add.__name__ == "add"


async def test_arguments_are_coerced_leniently_and_data_comes_back_as_json() -> None:
    outcome = await book.call(toy_context(), {"city": 7, "nights": "3", "pets": "true", "guests": ["Ann"]})
    assert not outcome.error
    assert outcome.text == '{"city": "7", "nights": 3, "price": 10.5, "member": 0, "pets": true, "guests": ["Ann"]}'


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"city": "Rome"}, "argument 'nights' is missing"),
        ({"city": "Rome", "nights": "many"}, "argument 'nights': Input should be a valid integer"),
        ({"city": "Rome", "nights": 1, "ctx": 1}, "there is no argument 'ctx'"),
        ({"city": "Rome", "nights": 1, "kind": "x"}, "argument 'kind': Input should be 'single' or 'double', got 'x'"),
        ({"city": "Rome", "nights": 1, "address": {"street": []}}, "argument 'address.street'"),
    ],
)
async def test_wrong_arguments_come_back_as_advice(arguments: dict[str, Any], says: str) -> None:
    """Pain C1."""
    outcome = await book.call(toy_context(), arguments)
    assert outcome.error
    assert outcome.text.startswith("error: ")
    assert says in outcome.text
    assert "call it as book(city: string, nights: integer" in outcome.text
    assert len(outcome.text) < 400


async def test_an_argument_may_have_any_name() -> None:
    @tool
    def odd(json: str, copy: int, model_config: str, self_: int = 1) -> str:
        """Odd."""
        return f"{json}{copy}{model_config}{self_}"

    assert (await odd.call(toy_context(), {"json": "a", "copy": 1, "model_config": "b"})).text == "a1b1"


@pytest.mark.parametrize(
    ("returned", "text"),
    [("as it is", "as it is"), (None, "ok"), (3, "3"), (True, "true"), ([1, "é"], '[1, "é"]'),
     (Address(street="x"), '{"street":"x","title":"Dr"}'),
     ({"a": Address(street="x")}, '{"a": {"street": "x", "title": "Dr"}}')],
)  # fmt: skip
async def test_what_a_tool_returns_is_spelled_for_the_model(returned: Any, text: str) -> None:
    @tool(inline=True)
    def give() -> Any:
        """Give."""
        return returned

    assert (await give.call(toy_context(), {})).text == text


def undocumented(x: int) -> int:
    return x


def no_type(x) -> int:  # type: ignore[no-untyped-def]
    """No."""
    return x


def variadic(*values: int) -> int:
    """No."""
    return 0


def anything(**values: int) -> int:
    """No."""
    return 0


def positional(x: int, /) -> int:
    """No."""
    return x


def unknown_type(x: NoSuchType) -> int:  # type: ignore[name-defined]  # noqa: F821
    """No."""
    return 0


def no_schema(x: threading.Lock) -> int:  # type: ignore[valid-type]
    """No."""
    return 0


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (no_type, "parameter 'x' has no type; annotate it, like x: str"),
        (variadic, "values cannot be described to a model"),
        (anything, "values cannot be described to a model"),
        (positional, "parameter 'x' is positional-only"),
        (unknown_type, "parameter 'x' has a type no schema can be made of: name 'NoSuchType'"),
        (no_schema, "parameter 'x' has a type no schema can be made of"),
    ],
)
def test_a_function_no_model_could_call_is_refused_at_definition_in_one_line(function: Any, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tool(function)
    message = str(caught.value)
    assert says in message
    assert function.__name__ in message
    assert "test_tool.py:" in message
    assert "\n" not in message


def test_a_tool_without_a_docstring_has_an_empty_description() -> None:
    assert tool(undocumented).schema.description == ""


def test_needs_are_one_spec_or_several() -> None:
    spec = ObjectSpec(name="x", make=object)
    other = ObjectSpec(name="y", make=object)
    assert tool(needs=spec)(undocumented).needs == (spec,)
    assert tool(needs=[spec, other])(undocumented).needs == (spec, other)
    assert tool(undocumented).needs == ()


async def test_what_a_tool_raises_is_an_observation_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Pain C2, K4."""

    @tool
    def fails() -> str:
        """Fail."""
        raise ValueError("no such row")

    for _ in range(3):
        outcome = await fails.call(toy_context(), {})
        assert (outcome.text, outcome.error) == ("error: fails raised ValueError: no such row", True)
    assert len(caplog.records) == 1
    assert caplog.records[0].exc_info is not None


@pytest.mark.parametrize("inline", [True, False])
async def test_a_tool_that_exits_ends_its_call_only(inline: bool) -> None:
    @tool(inline=inline)
    def leave() -> str:
        """Leave."""
        raise SystemExit(3)

    outcome = await leave.call(toy_context(), {})
    assert outcome.error
    assert "SystemExit" in outcome.text


async def test_a_tool_error_is_told_to_the_model_as_it_is() -> None:
    @tool
    async def refuse() -> str:
        """Refuse."""
        raise ToolError("the shop is closed; try tomorrow")

    assert (await refuse.call(toy_context(), {})).text == "error: the shop is closed; try tomorrow"


@pytest.mark.parametrize("error", [ResourceError("gone"), LimitReached(StopReason.WINDOW, "full")])
async def test_failures_of_the_infrastructure_are_no_observation(error: Exception) -> None:
    """The model is not to blame, and must not be trained on them."""

    @tool
    async def breaks() -> str:
        """Break."""
        raise error

    with pytest.raises(type(error)):
        await breaks.call(toy_context(), {})


async def test_an_async_tool_that_hangs_comes_back_as_an_observation() -> None:
    """Pain C18: the limit is on without being asked for."""
    cancelled = asyncio.Event()

    @tool
    async def hang() -> str:
        """Hang."""
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    outcome = await hang.call(toy_context(limits=Limits(tool_seconds=0.01)), {})
    assert outcome.text == "error: hang did not finish within 0.01 s; ask for less, or go on without it"
    assert cancelled.is_set()


async def test_a_sync_tool_that_hangs_is_left_behind_and_counted() -> None:
    """Pain C18, E2: the rollout goes on, and the thread cannot keep the process alive."""
    release = threading.Event()
    daemons = []

    @tool(timeout_s=0.01)
    def hang() -> str:
        """Hang."""
        daemons.append(threading.current_thread().daemon)
        release.wait()
        return "late"

    before = abandoned_threads()
    outcome = await hang.call(toy_context(), {})
    assert outcome.error
    assert "did not finish within 0.01 s" in outcome.text
    assert abandoned_threads() == before + 1
    assert daemons == [True]
    release.set()
    while abandoned_threads() > before:  # noqa: ASYNC110  # the thread has no other way to be heard
        await asyncio.sleep(0)


async def test_a_timeout_error_of_the_tool_itself_is_named_as_such() -> None:
    @tool
    async def slow_service() -> str:
        """Ask."""
        raise TimeoutError("the service is slow")

    outcome = await slow_service.call(toy_context(), {})
    assert outcome.text == "error: slow_service raised TimeoutError: the service is slow"


async def test_inline_tools_run_on_the_loop_and_others_do_not() -> None:
    def where() -> str:
        """Where."""
        return threading.current_thread().name

    assert (await Tool(where, inline=True).call(toy_context(), {})).text == threading.current_thread().name
    assert (await Tool(where).call(toy_context(), {})).text == "sortie-where"


async def test_a_sync_tool_that_raises_stop_iteration_does_not_hang() -> None:
    @tool
    def exhausted() -> str:
        """Take the next."""
        return next(iter(()))

    outcome = await exhausted.call(toy_context(), {})
    assert "StopIteration" in outcome.text
