from __future__ import annotations

import json
from pathlib import Path

import pytest
from renderer_tokenizers import CHATML, WITH_TOOLS, MakeTokenizer, qwen_template

from sortie.core.errors import UnknownName, UsageError
from sortie.inference.renderers import renderer_for
from sortie.inference.renderers.generic import GenericRenderer
from sortie.inference.renderers.qwen import QwenRenderer
from sortie.inference.renderers.smollm import SmolLMRenderer


@pytest.mark.parametrize(
    ("template", "kind"),
    [
        (CHATML, SmolLMRenderer),
        (qwen_template(default="Be Qwen"), QwenRenderer),
        (qwen_template(habit="optional"), QwenRenderer),
        (qwen_template(habit="always"), QwenRenderer),
        (WITH_TOOLS, GenericRenderer),
        ("{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}" + CHATML, GenericRenderer),
        (CHATML.replace("<|im_end|>\n{% endfor %}", "  <|im_end|>\n{% endfor %}"), GenericRenderer),
    ],
)
def test_a_family_is_chosen_only_if_it_writes_what_the_template_writes(
    make_tokenizer: MakeTokenizer, template: str, kind: type
) -> None:
    assert type(renderer_for(make_tokenizer(template))) is kind


@pytest.mark.parametrize(("model_type", "kind"), [("qwen3", QwenRenderer), ("llama", SmolLMRenderer)])
def test_a_chatml_folder_without_a_template_goes_by_its_model_type(
    make_tokenizer: MakeTokenizer, tmp_path: Path, model_type: str, kind: type
) -> None:
    make_tokenizer().backend.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type, "eos_token_id": 2}))
    assert type(renderer_for(tmp_path)) is kind


def test_a_wrong_name_lists_the_right_ones(make_tokenizer: MakeTokenizer) -> None:
    with pytest.raises(UnknownName, match=r"did you mean 'qwen'.*generic.*smollm"):
        renderer_for(make_tokenizer(), "qwem")


def test_a_template_that_cannot_carry_tools_is_refused_at_start_up(make_tokenizer: MakeTokenizer) -> None:
    """Pain A11."""
    with pytest.raises(UsageError, match="cannot be used with tools"):
        renderer_for(make_tokenizer(), "generic", tools=True)
    assert renderer_for(make_tokenizer(), "generic").render([]) is not None


def test_a_folder_without_a_tokenizer_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"tokenizer\.json"):
        renderer_for(tmp_path)
