"""Growing a conversation by sampled ids and rendering it whole give the same ids, for every shipped renderer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from renderer_tokenizers import MakeTokenizer

from sortie.core.messages import Message, ToolCall, assistant, system, tool_result, user
from sortie.core.tool_schema import ToolSchema
from sortie.inference.renderers.base import Renderer
from sortie.inference.renderers.parsing import parse_text
from sortie.inference.renderers.qwen import QwenRenderer
from sortie.inference.renderers.smollm import SmolLMRenderer

ADD = ToolSchema(
    name="add",
    description="Adds two numbers.",
    parameters={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
)
# Text as models write it: nothing that spells a call, a block of thinking, or blank ends.
TEXT = st.sampled_from(["hello", "42", "é√ a + b", "x:\n\n[1]", "I'm hello  42", "a\tb c", "{1, 2}", "<b>no</b>"])
CALLS = st.lists(
    st.builds(ToolCall, name=st.sampled_from(["add", "sub"]), arguments=st.dictionaries(TEXT, st.integers() | TEXT)),
    max_size=2,
).map(tuple)


@st.composite
def turns(draw: st.DrawFn, thinks: bool) -> list[tuple[Message, list[Message]]]:
    """Assistant messages, each with what answers it."""
    out = []
    for _ in range(draw(st.integers(1, 3))):
        calls = draw(CALLS)
        said = assistant(draw(TEXT if not calls else st.just("") | TEXT), *calls)
        if thinks and draw(st.booleans()):
            said = replace(said, thinking=draw(TEXT))
        answers = [tool_result(draw(TEXT), name=call.name) for call in calls] or [user(draw(TEXT))]
        out.append((said, answers))
    return out


def may_think(renderer: Renderer) -> bool:
    return isinstance(renderer, QwenRenderer) and renderer.thinking


@settings(max_examples=25)
@given(st.data())
def test_growing_a_conversation_equals_rendering_it_whole(renderer: Renderer, data: st.DataObject) -> None:
    """Pain A9."""
    tools = data.draw(st.sampled_from([[], [ADD]]))
    history = [*data.draw(st.sampled_from([[], [system("Be brief.")]])), user(data.draw(TEXT))]
    ids = renderer.render(history, tools)
    for said, answers in data.draw(turns(may_think(renderer))):
        sampled = renderer.spell(said)
        history.append(said)
        ids = ids + sampled + renderer.extend(history, sampled, answers, tools)
        history.extend(answers)
        assert ids == renderer.render(history, tools)


@settings(max_examples=25)
@given(st.data())
def test_what_a_model_spells_is_parsed_back(renderer: Renderer, data: st.DataObject) -> None:
    """Pain A7: also with the opening tag of the thinking in the prompt."""
    for said, _ in data.draw(turns(may_think(renderer))):
        assert forget_ids(renderer.parse(renderer.spell(said))) == said


def forget_ids(message: Message) -> Message:
    return replace(message, tool_calls=tuple(replace(call, id="") for call in message.tool_calls))


def test_a_malformed_call_is_rendered_as_the_model_wrote_it(renderer: Renderer) -> None:
    """Pain C3: no repair of what was sampled."""
    text = '{"name": "add", "arguments": {"a": }}'
    sampled = renderer.spell(assistant(text))
    message = renderer.parse(sampled)
    assert message.tool_calls[0].error is not None
    assert renderer.spell(message) == sampled


def test_other_spellings_of_a_reply_are_never_replaced(make_tokenizer: MakeTokenizer) -> None:
    """Pain A1, A2: `hello` sampled letter by letter stays letter by letter in every later prompt."""
    renderer = SmolLMRenderer(make_tokenizer())
    sampled = [*(token for letter in "hello" for token in renderer.encode(letter)), *renderer.stop_ids[:1]]
    assert renderer.decode(sampled) == "hello<|im_end|>"
    assert sampled != renderer.spell(assistant("hello"))  # this tokenizer has two spellings

    prompt = renderer.render([user("x")])
    message = renderer.parse(sampled)
    grown = prompt + sampled + renderer.extend([user("x"), message], sampled, [user("y")])

    assert message == assistant("hello")
    assert grown[len(prompt) : len(prompt) + len(sampled)] == sampled
    assert renderer.decode(grown) == renderer.decode(renderer.render([user("x"), message, user("y")]))


def test_a_turn_cut_by_length_is_closed_before_the_next(renderer: Renderer) -> None:
    """Pain A9: the missing end token is added, as an observation."""
    if not renderer.stop_ids:
        return  # a chat server's line is complete by construction
    whole = renderer.spell(assistant("hello world"))
    cut = whole[:-1]
    history = [user("x"), assistant("hello world")]
    assert cut + renderer.extend(history, cut, [user("y")]) == whole + renderer.extend(history, whole, [user("y")])


def test_a_turn_that_sampled_nothing_is_still_closed(renderer: Renderer) -> None:
    """Pain A9."""
    history = [user("x"), assistant("")]
    added = renderer.extend(history, [], [user("y")])
    assert added[:1] == list(renderer.stop_ids[:1]) or not renderer.stop_ids


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "add", "arguments": {"a": 1}}',
        'So: <tool_call>{"name": "add", "arguments": "{\\"a\\": 1}"}</tool_call>',
        '{"name": "add", "arguments": {"a": 1}',
        "<tool_call>add(1)",
        "no call",
    ],
)
def test_every_renderer_reads_the_same_calls(renderer: Renderer, text: str) -> None:
    """Pain C5: one parser, whichever model or server wrote the text, in training and evaluation."""
    always = isinstance(renderer, QwenRenderer) and renderer.habit == "always"
    sampled = renderer.encode("</think>\n\n" + text if always else text)
    assert renderer.parse(sampled).tool_calls == parse_text(text).tool_calls
