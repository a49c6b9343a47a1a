from __future__ import annotations

import pytest
from renderer_tokenizers import MakeTokenizer, qwen_template

from sortie.core.errors import PrefixBreak, UsageError
from sortie.core.messages import Message, ToolCall, assistant, system, tool_result, user
from sortie.core.tool_schema import ToolSchema
from sortie.inference.renderers.qwen import QwenRenderer

ADD = ToolSchema(
    name="add", description="Adds.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}}
)
CALL = ToolCall(name="add", arguments={"a": 1})


def thinking(thought: str, content: str, *calls: ToolCall) -> Message:
    return Message(role="assistant", content=content, thinking=thought, tool_calls=calls)


def qwen(make: MakeTokenizer, habit: str = "none", **options: object) -> QwenRenderer:
    return QwenRenderer(make(qwen_template(habit=habit)), **options)  # type: ignore[arg-type]


def test_tools_are_described_in_the_words_the_models_were_trained_on(make_tokenizer: MakeTokenizer) -> None:
    renderer = qwen(make_tokenizer)
    text = renderer.decode(renderer.render([system("Be brief."), user("Hi")], [ADD]))
    assert text == (
        "<|im_start|>system\nBe brief.\n\n# Tools\n\n"
        "You may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
        '{"type": "function", "function": {"name": "add", "description": "Adds.", '
        '"parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}}\n</tools>\n\n'
        "For each function call, return a json object with function name and arguments within "
        '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n'
        "</tool_call><|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_calls_and_results_are_spelled_as_in_the_public_template(make_tokenizer: MakeTokenizer) -> None:
    renderer = qwen(make_tokenizer)
    talk = [user("Hi"), assistant("So:", CALL, CALL), tool_result("2", "add"), tool_result("3", "add")]
    assert renderer.decode(renderer.render(talk)) == (
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nSo:\n"
        '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>\n'
        '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\n2\n</tool_response>\n<tool_response>\n3\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_a_template_with_a_system_text_of_its_own_gives_it_where_none_is_given(make_tokenizer: MakeTokenizer) -> None:
    """Qwen2.5 has one, Qwen3 has none."""
    with_default = QwenRenderer(make_tokenizer(qwen_template(default="You are Qwen.")))
    assert with_default.decode(with_default.render([user("x")])).startswith(
        "<|im_start|>system\nYou are Qwen.<|im_end|>"
    )
    assert with_default.decode(with_default.render([user("x")], [ADD])).startswith(
        "<|im_start|>system\nYou are Qwen.\n\n# Tools"
    )
    without = qwen(make_tokenizer)
    assert without.decode(without.render([user("x")])).startswith("<|im_start|>user")
    assert without.decode(without.render([user("x")], [ADD])).startswith("<|im_start|>system\n# Tools")


@pytest.mark.parametrize(
    ("habit", "options", "tail"),
    [
        ("none", {}, ""),
        ("optional", {}, ""),
        ("optional", {"thinking": False}, "<think>\n\n</think>\n\n"),
        ("always", {}, "<think>\n"),
    ],
)
def test_the_prompt_ends_as_each_thinking_habit_wants(
    make_tokenizer: MakeTokenizer, habit: str, options: dict[str, bool], tail: str
) -> None:
    """Pain A7."""
    renderer = qwen(make_tokenizer, habit, **options)
    assert renderer.decode(renderer.render([user("x")])).endswith("<|im_start|>assistant\n" + tail)


def test_a_block_opened_by_the_prompt_is_parsed_from_a_completion_that_only_closes_it(
    make_tokenizer: MakeTokenizer,
) -> None:
    """Pain A7."""
    renderer = qwen(make_tokenizer, "always")
    sampled = [*renderer.encode("1 and 1\n</think>\n\n2"), *renderer.stop_ids[:1]]
    assert renderer.parse(sampled) == thinking("1 and 1", "2")
    assert renderer.spell(thinking("1 and 1", "2")) == sampled
    assert renderer.parse(renderer.encode("1 and")) == thinking("1 and", "")


def test_calls_inside_the_thinking_are_not_calls(make_tokenizer: MakeTokenizer) -> None:
    renderer = qwen(make_tokenizer, "optional")
    text = '<think>\nmaybe {"name": "add", "arguments": {"a": 9}}\n</think>\n\n{"name": "add", "arguments": {"a": 1}}'
    message = renderer.parse(renderer.encode(text))
    assert message.tool_calls == (CALL,)


def test_thinking_is_kept_in_the_history_by_default(make_tokenizer: MakeTokenizer) -> None:
    """Pain A5, A8: the prompt only grows."""
    renderer = qwen(make_tokenizer, "optional")
    said = thinking("hm", "2")
    talk = [user("x"), said]
    grown = renderer.render(talk[:1]) + renderer.spell(said) + renderer.extend(talk, renderer.spell(said), [user("y")])
    assert "hm" in renderer.decode(grown)
    assert grown == renderer.render([*talk, user("y")])


def test_stripping_the_thinking_of_earlier_turns_breaks_the_prefix_and_says_so(make_tokenizer: MakeTokenizer) -> None:
    """Pain A5, A10."""
    renderer = qwen(make_tokenizer, "optional", history_thinking="strip")
    said = thinking("hm", "", CALL)
    talk = [user("x"), said]
    sampled = renderer.spell(said)
    # Within one question nothing is dropped, as in the public template.
    grown = renderer.render(talk[:1]) + sampled + renderer.extend(talk, sampled, [tool_result("2", "add")])
    talk.append(tool_result("2", "add"))
    assert grown == renderer.render(talk)

    answer = assistant("2")
    talk.append(answer)
    with pytest.raises(PrefixBreak, match="thinking"):
        renderer.extend(talk, renderer.spell(answer), [user("y")])
    again = renderer.decode(renderer.render([*talk, user("y")]))
    assert "hm" not in again
    assert '{"name": "add"' in again


def test_without_thinking_stripping_breaks_nothing(make_tokenizer: MakeTokenizer) -> None:
    """Pain A5."""
    renderer = qwen(make_tokenizer, "optional", history_thinking="strip")
    talk = [user("x"), assistant("2")]
    grown = (
        renderer.render(talk[:1])
        + renderer.spell(talk[1])
        + renderer.extend(talk, renderer.spell(talk[1]), [user("y")])
    )
    assert grown == renderer.render([*talk, user("y")])


def test_thinking_cannot_be_turned_off_where_the_model_always_thinks(make_tokenizer: MakeTokenizer) -> None:
    with pytest.raises(UsageError, match="always thinks"):
        qwen(make_tokenizer, "always", thinking=False)
