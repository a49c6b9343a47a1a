from __future__ import annotations

import pytest
from renderer_tokenizers import CHATML, WITH_TOOLS, MakeTokenizer, qwen_template

from sortie.core.errors import PrefixBreak, UsageError
from sortie.core.messages import Message, ToolCall, assistant, tool_result, user
from sortie.core.tool_schema import ToolSchema
from sortie.inference.renderers.generic import GenericRenderer

ADD = ToolSchema(name="add", description="Adds.", parameters={"type": "object", "properties": {}})


def test_the_text_is_the_templates_own(make_tokenizer: MakeTokenizer) -> None:
    renderer = GenericRenderer(make_tokenizer(WITH_TOOLS))
    call = ToolCall(name="add", arguments={"a": "<é>"})
    text = renderer.decode(renderer.render([user("x"), assistant("So", call), tool_result("2", "add")], [ADD]))
    assert text.endswith(
        '<|im_start|>assistant\nSo\n<tool_call>{"name": "add", "arguments": {"a": "<é>"}}</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>2</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_template_that_drops_earlier_thinking_raises_prefix_break(make_tokenizer: MakeTokenizer) -> None:
    """Pain A5, A10: never a delta taken by length."""
    renderer = GenericRenderer(make_tokenizer(qwen_template(habit="optional")))
    said = Message(role="assistant", content="2", thinking="hm")
    sampled = renderer.encode("<think>\nhm\n</think>\n\n2") + list(renderer.stop_ids[:1])
    assert renderer.parse(sampled) == said
    with pytest.raises(PrefixBreak, match="rewrites history"):
        renderer.extend([user("x"), said], sampled, [user("y")])


COUNTING = (
    "<|im_start|>system\n{{ messages | selectattr('role', 'ne', 'assistant') | list | length }}<|im_end|>\n" + CHATML
)


def test_a_template_that_rewrites_in_place_raises_prefix_break(make_tokenizer: MakeTokenizer) -> None:
    """Pain A10: a rewriting of equal length is noticed too."""
    renderer = GenericRenderer(make_tokenizer(COUNTING))
    history = [user("x"), assistant("2")]
    with pytest.raises(PrefixBreak):
        renderer.extend(history, renderer.spell(assistant("2")), [user("y")])


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (CHATML, "tools out of the prompt"),
        (WITH_TOOLS.replace("m.tool_calls or []", "[]"), "calls out of the history"),
        (WITH_TOOLS.replace("<tool_response>{{ m.content }}</tool_response>", ""), "results out of the history"),
        (
            WITH_TOOLS.replace("{{ c.function | tojson }}", "{{ c.function.name }} {{ c.function.arguments }}"),
            "spells calls",
        ),
        (WITH_TOOLS.replace("<|im_start|>user\n<tool_response>", "{{ raise_exception('no tools') }}"), "no tools"),
    ],
)
def test_a_template_that_loses_part_of_tool_use_is_refused(
    make_tokenizer: MakeTokenizer, template: str, problem: str
) -> None:
    """Pain A11."""
    renderer = GenericRenderer(make_tokenizer(template))
    with pytest.raises(UsageError, match=problem):
        renderer.require_tools()
    with pytest.raises(UsageError, match=problem):
        renderer.render([user("x")], [ADD])
    assert renderer.render([user("x")])  # without tools it serves


def test_a_template_may_not_reach_python(make_tokenizer: MakeTokenizer) -> None:
    """Pain C4: templates come with downloaded folders."""
    with pytest.raises(UsageError, match="unsafe"):
        GenericRenderer(make_tokenizer("{{ messages.__class__.__mro__ }}" + CHATML))


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (None, "no chat template"),
        ("{% if %}", "not valid Jinja"),
        (COUNTING.replace("'ne', 'assistant'", "'ne', 'x'"), "cannot be sampled from turn by turn"),
        (CHATML.replace("<|im_end|>", "#"), "none of the folder's end tokens"),
    ],
)
def test_an_unusable_folder_is_one_clear_line(
    make_tokenizer: MakeTokenizer, template: str | None, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem) as caught:
        GenericRenderer(make_tokenizer(template))
    assert "\n" not in str(caught.value)


def test_a_template_that_refuses_an_order_of_roles_says_which(make_tokenizer: MakeTokenizer) -> None:
    picky = "{% if messages[-1].role == 'system' %}{{ raise_exception('system must be first') }}{% endif %}" + CHATML
    renderer = GenericRenderer(make_tokenizer(picky))
    with pytest.raises(UsageError, match="user, system: system must be first"):
        renderer.render([user("x"), Message(role="system", content="s")])
