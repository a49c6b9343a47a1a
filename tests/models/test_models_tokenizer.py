"""Text and ids, as transformers has them, without transformers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from sortie.core.errors import UsageError
from sortie.models.tokenizer import load_tokenizer

CORPUS = [
    "",
    " ",
    "Hello, world!",
    "  leading and trailing  ",
    "12 + 34 = 46; 3.14159e-10",
    "\n\n1. one\n\n2. two\n\t\t3",
    "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n",
    "a<|im_end|>b <|im_end|> c<|endoftext|>",
    '<tool_call>{"name": "add", "arguments": {"a": 3, "b": [1, 2]}}</tool_call>',
    "naïve café — “quotes” … Ελληνικά 日本語 العربية",
    "emoji 👩‍👩‍👧 and combining e\u0301 and nul \x00 and \u200b",
    "def f(x):\n    return x ** 2  # comment\r\n",
    "don't I'll we've THEY'RE",
    "x" * 300,
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A byte-level tokenizer with two special tokens and no companions."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(
        models.BPE({token: i for i, token in enumerate([*alphabet, "he", "hel"])}, [("h", "e"), ("he", "l")])
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken("<end>", normalized=False), AddedToken("<stop>", normalized=False)])
    backend.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def write(folder: Path, name: str, data: object) -> None:
    (folder / name).write_text(json.dumps(data))


@pytest.mark.model
def test_ids_equal_those_of_transformers(smollm2: Path) -> None:
    from transformers import AutoTokenizer

    ours, theirs = load_tokenizer(smollm2), AutoTokenizer.from_pretrained(smollm2)
    for text in CORPUS:
        ids = ours.encode(text)
        assert ids == theirs.encode(text, add_special_tokens=False), text
        assert ours.decode(ids) == text
    assert (ours.eos_ids, ours.chat_template) == ((theirs.eos_token_id,), theirs.chat_template)
    assert ours.vocab_size == len(theirs) == 49_152


def test_reading_one_imports_neither_transformers_nor_torch(folder: Path) -> None:
    code = (
        "import sys; from sortie.models.tokenizer import load_tokenizer; load_tokenizer(sys.argv[1]);"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)


def test_special_tokens_in_text_are_ids_unless_the_text_is_not_trusted(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    trusted, plain = tokenizer.encode("hel<end>"), tokenizer.encode("hel<end>", specials=False)
    assert trusted == [257, 258]
    assert 258 not in plain
    assert tokenizer.decode(plain) == tokenizer.decode(trusted) == "hel<end>"
    assert tokenizer.encode("<end>") == [258], "asking for plain text must not change the shared tokenizer"


def test_truncation_and_padding_saved_in_the_folder_are_not_applied(folder: Path) -> None:
    backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    backend.enable_truncation(4)
    backend.enable_padding(length=8)
    backend.save(str(folder / "tokenizer.json"))
    assert len(load_tokenizer(folder).encode("abcdef")) == 6


def test_every_ending_token_of_the_folder_is_known(folder: Path) -> None:
    """Pain A28."""
    write(folder, "tokenizer_config.json", {"eos_token": {"content": "<stop>"}, "bos_token": "<end>"})
    write(folder, "generation_config.json", {"eos_token_id": [258, 259, 258]})
    write(folder, "config.json", {"eos_token_id": 7})
    tokenizer = load_tokenizer(folder)
    assert tokenizer.eos_ids == (258, 259)
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<end>", "<stop>")
    (folder / "generation_config.json").unlink()
    assert load_tokenizer(folder).eos_ids == (7, 259)


def test_the_template_file_wins_and_of_named_ones_the_default(folder: Path) -> None:
    assert load_tokenizer(folder).chat_template is None
    named = [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]
    write(folder, "tokenizer_config.json", {"chat_template": named})
    assert load_tokenizer(folder).chat_template == "D"
    (folder / "chat_template.jinja").write_text("J")
    assert load_tokenizer(folder).chat_template == "J"


def test_tokens_that_only_the_config_knows_are_added_with_their_ids(folder: Path) -> None:
    entry = {"content": "<tool>", "special": True}
    write(folder, "tokenizer_config.json", {"added_tokens_decoder": {"260": entry}})
    tokenizer = load_tokenizer(folder)
    assert tokenizer.encode("a<tool>")[1:] == [260]
    assert tokenizer.vocab_size == 261
    write(folder, "tokenizer_config.json", {"added_tokens_decoder": {"300": entry}})
    with pytest.raises(UsageError, match=r"gives '<tool>' the id 300, tokenizer\.json 260"):
        load_tokenizer(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": "1.0"}'])
def test_a_broken_tokenizer_file_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(UsageError, match=r"cannot read .*tokenizer\.json"):
        load_tokenizer(tmp_path)


def test_a_folder_without_a_tokenizer_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no tokenizer\.json"):
        load_tokenizer(tmp_path)
