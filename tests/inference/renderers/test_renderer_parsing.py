from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from sortie.core.messages import ToolCall, assistant
from sortie.inference.renderers.parsing import parse_text, read_call, split_thinking

ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}
ADD_CALL = ToolCall(name="add", arguments={"a": 1, "b": 2})


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ADD),
        f"<tool_call>{json.dumps(ADD)}</tool_call>",
        f"<tool_call>\n{json.dumps(ADD)}\n</tool_call>",
        f"<tool_call>{json.dumps(ADD)}",
        f"{json.dumps(ADD)}</tool_call>",
        json.dumps({"name": "add", "arguments": json.dumps(ADD["arguments"])}),
        json.dumps({"arguments": ADD["arguments"], "name": "add"}),
        json.dumps({"name": "add", "parameters": ADD["arguments"]}),
    ],
)
def test_every_accepted_spelling_reads_as_the_same_call(text: str) -> None:
    assert parse_text(text) == assistant("", ADD_CALL)


def test_text_around_a_call_is_kept_as_content() -> None:
    assert parse_text(f"Let me add. {json.dumps(ADD)} Done.") == assistant("Let me add.  Done.", ADD_CALL)


@pytest.mark.parametrize(
    "text",
    ["", "42", " 42\n", "a { b } c", '{"answer": 3}', '{"name": "Ann", "age": 3}', "{{{{", "f{x} = {1, 2}"],
)
def test_text_without_a_call_is_content_unchanged(text: str) -> None:
    assert parse_text(text) == assistant(text)


def test_a_tool_schema_repeated_by_the_model_is_not_a_call() -> None:
    schema = json.dumps({"name": "add", "description": "Adds.", "parameters": {"type": "object"}})
    assert parse_text(schema) == assistant(schema)


def test_several_calls_of_one_message_keep_their_order() -> None:
    texts = [json.dumps({"name": name, "arguments": {}}) for name in "abc"]
    assert [call.name for call in parse_text("\n".join(texts)).tool_calls] == ["a", "b", "c"]
    tagged = "".join(f"<tool_call>{text}</tool_call>" for text in texts)
    assert [call.name for call in parse_text(tagged).tool_calls] == ["a", "b", "c"]


def test_a_closing_tag_inside_an_argument_does_not_end_the_call() -> None:
    call = {"name": "write", "arguments": {"text": "</tool_call> and {"}}
    (read,) = parse_text(f"<tool_call>{json.dumps(call)}</tool_call>").tool_calls
    assert read == ToolCall(name="write", arguments={"text": "</tool_call> and {"})


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"name": "add", "arguments": {"a": 1', "add"),
        ('{"name": "add", "arguments": {"a": 1}', "add"),
        ('{"name": "add", "arguments": {a: 1}}', "add"),
        ('{"name": "add", "arguments": [1, 2]}', "add"),
        ('{"name": "add", "arguments": "1 + 2"}', "add"),
        ('{"name": "add", "arguments": {"a": NaN}}', "add"),
        ('{"name": "add", "arguments": {"a": 1e999}}', "add"),
        ('{"name": 3, "arguments": {}}', ""),
        ("<tool_call>add(1, 2)</tool_call>", ""),
        ("<tool_call></tool_call>", ""),
        ('<tool_call>["add"]</tool_call>', ""),
        ('<tool_call>{"name": "add"}</tool_call>', "add"),
        ('{"name": "add", "arguments": {"a": "\\ud800"}}', ""),
    ],
)
def test_a_malformed_call_says_in_one_line_how_to_write_it(text: str, name: str) -> None:
    """Pain C1, C2."""
    message = parse_text(text)
    (call,) = message.tool_calls
    assert call.name == name
    assert call.error is not None
    assert '"name": ' in call.error
    assert "\n" not in call.error
    assert call.arguments == {}


@pytest.mark.parametrize("bad", ['{"name": "sub", "arguments": {"a": }}', "<tool_call>sub(1)</tool_call>"])
@pytest.mark.parametrize("first", [True, False])
def test_valid_calls_are_kept_beside_a_malformed_one(bad: str, first: bool) -> None:
    """Pain C3."""
    good = f"<tool_call>{json.dumps(ADD)}</tool_call>"
    calls = parse_text(bad + good if first else good + bad).tool_calls
    assert [call for call in calls if call.error is None] == [ADD_CALL]
    assert len(calls) == 2


def test_the_text_of_a_malformed_call_stays_in_the_content() -> None:
    """Pain C3: rendering the message again must not lose what the model wrote."""
    bad = '{"name": "sub", "arguments": {"a": }}'
    assert parse_text(f"{bad}\n{json.dumps(ADD)}").content == bad


@pytest.mark.parametrize(
    "hostile",
    [
        '{"name": "add", "arguments": __import__("os").system("touch owned")}',
        "<tool_call>__import__('os').system('touch owned')</tool_call>",
        "<tool_call>{'name': 'add', 'arguments': {}}</tool_call>",
        "<tool_call>!!python/object/apply:os.system ['touch owned']</tool_call>",
    ],
)
def test_text_is_never_evaluated(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pain C4."""
    import os

    ran: list[str] = []
    monkeypatch.setattr(os, "system", ran.append)
    (call,) = parse_text(hostile).tool_calls
    assert call.error is not None
    assert ran == []


@pytest.mark.parametrize(
    "deep", ['{"a":' * 20_000, "[" * 20_000, '<tool_call>{"name": "x", "arguments": ' + "[" * 20_000]
)
def test_deep_nesting_is_read_without_a_crash(deep: str) -> None:
    """Pain C1, C4."""
    assert all(call.error for call in parse_text(deep).tool_calls)


@given(st.text(alphabet='{}[]"\\:,ab<>/ \n', max_size=60) | st.text(max_size=40))
def test_no_text_raises_and_no_plain_text_is_lost(text: str) -> None:
    """Pain C1, C2."""
    message = parse_text(text)
    if not message.tool_calls:
        assert message.content == text


ARGUMENTS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=12),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)


@settings(max_examples=40)
@given(ARGUMENTS, st.booleans())
def test_whatever_arguments_are_spelled_are_read_back(arguments: dict[str, object], tagged: bool) -> None:
    text = json.dumps({"name": "t", "arguments": arguments}, ensure_ascii=False)
    text = f"<tool_call>{text}</tool_call>" if tagged else text
    assert parse_text(text) == assistant("", ToolCall(name="t", arguments=arguments))


def test_arguments_of_the_openai_wire_are_read_by_the_same_rules() -> None:
    """Pain C5."""
    assert read_call("add", '{"a": 1, "b": 2}') == ADD_CALL
    assert read_call("add", "") == ToolCall(name="add")
    for bad in ('{"a": ', "[1]", "NaN"):
        assert (
            read_call("add", bad, id="c1").error
            == parse_text(json.dumps({"name": "add", "arguments": bad})).tool_calls[0].error
        )


def test_thinking_is_split_with_its_opening_tag_in_the_text_or_in_the_prompt() -> None:
    """Pain A7."""
    assert split_thinking("<think>\nhm\n</think>\n\n42") == ("hm", "42")
    assert split_thinking("hm\n</think>\n\n42", opened=True) == ("hm", "42")
    assert split_thinking("<think>\n\n</think>\n\n42") == ("", "42")
    assert split_thinking("42") == (None, "42")
    assert split_thinking("still thinking", opened=True) == ("still thinking", "")
