"""Small real tokenizers: byte-level BPE, in which almost every text has more than one spelling."""

from __future__ import annotations

import json
from collections.abc import Callable

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from sortie.inference.renderers.base import Renderer
from sortie.inference.renderers.generic import GenericRenderer
from sortie.inference.renderers.messages import MessageRenderer
from sortie.inference.renderers.qwen import TOOLS_FOOT, TOOLS_HEAD, QwenRenderer
from sortie.inference.renderers.smollm import SmolLMRenderer
from sortie.models.tokenizer import ChatTokenizer

CORPUS = [
    "<|im_start|>system user assistant tool\n",
    'To call one, reply {"name": "calculator", "arguments": {"expression": "12 + 30"}}\n',
    "What is 12 + 30? The answer is 42. Evaluate an arithmetic expression.\n\n",
    "<tool_call></tool_call><tool_response></tool_response><think></think> hello world hello world\n",
] * 8
CHATML = (
    "{% for m in messages %}{% if loop.first and m.role != 'system' %}<|im_start|>system\nBe SmolLM<|im_end|>\n"
    "{% endif %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

TURNS = (
    "{% for m in messages %}{% if m.role == 'tool' %}<|im_start|>user\n<tool_response>{{ m.content }}</tool_response>"
    "<|im_end|>\n{% elif m.role == 'assistant' %}<|im_start|>assistant\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{% if m.content or not loop.first %}{{ '\n' }}{% endif %}"
    "<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>\n"
    "{% elif not (loop.first and m.role == 'system') %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WITH_TOOLS = (
    "<|im_start|>system\n{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}"
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}<|im_end|>\n" + TURNS
)
"""A template of no family: what GenericRenderer is for."""


def qwen_template(*, default: str = "", habit: str = "none") -> str:
    """A template that writes what Qwen's do, in our own words; `habit` as in QwenRenderer."""
    last = "{% set q = namespace(at=-1) %}{% for m in messages %}{% if m.role == 'user' %}{% set q.at = loop.index0 %}"
    last += "{% endif %}{% endfor %}"
    given = "messages[0].content if messages[0].role == 'system' else '" + default + "'"
    head = "{% set given = " + given + " %}{% if given or tools %}<|im_start|>system\n{{ given }}{% if tools %}"
    head += (
        "{{ '\n\n' if given else '' }}{{ HEAD }}{% for t in tools %}{{ '\n' }}{{ t | tojson }}{% endfor %}{{ FOOT }}"
    )
    head += "{% endif %}<|im_end|>\n{% endif %}"
    think = ""
    if habit != "none":
        think = "{% if loop.index0 > q.at and (loop.last or m.reasoning_content) %}"
        think += "<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    turns = "{% for m in messages %}{% if m.role == 'assistant' %}<|im_start|>assistant\n" + think + "{{ m.content }}"
    turns += "{% for c in m.tool_calls or [] %}{{ '\n' if m.content or not loop.first else '' }}"
    turns += "<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}<|im_end|>\n"
    turns += "{% elif m.role == 'tool' %}{% if loop.previtem.role != 'tool' %}<|im_start|>user{% endif %}"
    turns += "{{ '\\n' }}<tool_response>\n{{ m.content }}\n</tool_response>"
    turns += "{% if loop.last or loop.nextitem.role != 'tool' %}<|im_end|>\n{% endif %}"
    turns += (
        "{% elif m.role == 'user' or not loop.first %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}"
    )
    turns += "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    turns += "<think>\n" if habit == "always" else ""
    text = last + head + turns + "{% endif %}"
    return text.replace("HEAD", json.dumps(TOOLS_HEAD)).replace("FOOT", json.dumps(TOOLS_FOOT))


MakeTokenizer = Callable[..., ChatTokenizer]


def build(template: str | None = CHATML, *, added: tuple[str, ...] = ()) -> ChatTokenizer:
    """A ChatML tokenizer; `added` are tokens of their own that are not control tokens."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    )
    backend.train_from_iterator(CORPUS, trainer)
    backend.add_tokens([AddedToken(token, special=False, normalized=False) for token in added])
    eos = (backend.token_to_id("<|im_end|>"), backend.token_to_id("<|endoftext|>"))
    return ChatTokenizer(
        backend=backend, chat_template=template, eos_ids=eos, bos_token="<|endoftext|>", eos_token="<|im_end|>"
    )


RENDERERS: dict[str, Callable[[], Renderer]] = {
    "smollm": lambda: SmolLMRenderer(build()),
    "qwen2.5": lambda: QwenRenderer(build(qwen_template(default="Be Qwen"))),
    "qwen3": lambda: QwenRenderer(build(qwen_template(habit="optional"), added=("<think>", "</think>", "<tool_call>"))),
    "qwen3-off": lambda: QwenRenderer(build(qwen_template(habit="optional")), thinking=False),
    "qwen3-always": lambda: QwenRenderer(build(qwen_template(habit="always"))),
    "generic": lambda: GenericRenderer(build(WITH_TOOLS)),
    "messages": MessageRenderer,
}
