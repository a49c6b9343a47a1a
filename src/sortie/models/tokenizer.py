"""A model folder's tokenizer and chat template, read without transformers.

Nothing is added around a text: no beginning-of-sequence token, no padding, no truncation. What the folder's files say
about ending tokens is gathered here once, so that engine and renderers agree on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sortie.core.errors import UsageError
from sortie.models.folder import read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class ChatTokenizer:
    """Text to ids and back, for one model folder. Safe to share between threads."""

    backend: Tokenizer
    chat_template: str | None = None
    """Jinja source of the default chat template; None: the folder has none."""
    eos_ids: tuple[int, ...] = ()
    """Every token that the folder names as an end, those of generation_config.json first."""
    bos_token: str | None = None
    """Spelling that chat templates read as `bos_token`."""
    eos_token: str | None = None
    """Spelling that chat templates read as `eos_token`."""

    def encode(self, text: str, *, specials: bool = True) -> list[int]:
        """Ids of `text`. With `specials`, special tokens spelled in the text become their ids.

        Without, they are spelled out in ordinary tokens: for text from tools and users, which may not end a turn.
        """
        backend = self.backend if specials else self._plain
        ids: list[int] = backend.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of ids, special tokens spelled out."""
        return self.backend.decode(list(token_ids), skip_special_tokens=False)

    def token_to_id(self, token: str) -> int | None:
        """Id of one token by its spelling, or None."""
        return self.backend.token_to_id(token)

    @cached_property
    def vocab_size(self) -> int:
        """One more than the largest id. The model's embedding may have more rows, never fewer."""
        return max(self.backend.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    @cached_property
    def _plain(self) -> Tokenizer:
        # A copy, because the switch is a property of the whole backend and other threads use the first one.
        from tokenizers import Tokenizer

        copy = Tokenizer.from_str(self.backend.to_str())
        copy.encode_special_tokens = True
        return copy


def load_tokenizer(folder: Path | str) -> ChatTokenizer:
    """Read tokenizer.json and its companions from a folder in Hugging Face layout.

    Raises: UsageError if tokenizer.json is missing or unreadable, or a companion file is not JSON.
    """
    folder = Path(folder)
    config = read_json(folder / "tokenizer_config.json")
    backend = _load_backend(folder / "tokenizer.json")
    _add_missing_tokens(backend, config.get("added_tokens_decoder", {}), folder)
    bos, eos = _spelling(config.get("bos_token")), _spelling(config.get("eos_token"))
    return ChatTokenizer(
        backend=backend,
        chat_template=_chat_template(folder, config),
        eos_ids=_eos_ids(folder, backend, eos),
        bos_token=bos,
        eos_token=eos,
    )


def _load_backend(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    if not path.is_file():
        raise UsageError(f"{path.parent} has no tokenizer.json: Sortie reads model folders in Hugging Face layout")
    try:
        backend = Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - tokenizers raises a bare Exception for every malformed file
        raise UsageError(f"cannot read {path}: {error}") from None
    # Folders saved after training often carry these; they would silently cut or pad prompts.
    backend.no_truncation()
    backend.no_padding()
    return backend


def _add_missing_tokens(backend: Tokenizer, added: dict[str, Any], folder: Path) -> None:
    """Tokens that only tokenizer_config.json knows, as older folders have them.

    Raises: UsageError if one cannot get the id it is declared with.
    """
    from tokenizers import AddedToken

    for number, entry in sorted(added.items(), key=lambda item: int(item[0])):
        if backend.token_to_id(entry["content"]) is None:
            flags = {k: bool(entry.get(k, False)) for k in ("single_word", "lstrip", "rstrip", "normalized", "special")}
            backend.add_tokens([AddedToken(entry["content"], **flags)])
        if backend.token_to_id(entry["content"]) != int(number):
            raise UsageError(
                f"{folder}: tokenizer_config.json gives {entry['content']!r} the id {number}, "
                f"tokenizer.json {backend.token_to_id(entry['content'])}"
            )


def _spelling(entry: Any) -> str | None:
    """A special token as tokenizer_config.json writes it: a string, or an object with `content`."""
    if isinstance(entry, dict):
        entry = entry.get("content")
    return entry if isinstance(entry, str) else None


def _chat_template(folder: Path, config: dict[str, Any]) -> str | None:
    """chat_template.jinja wins over tokenizer_config.json, as in transformers; of several named ones, `default`."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    template = config.get("chat_template")
    if isinstance(template, list):
        template = {entry["name"]: entry["template"] for entry in template}.get("default")
    return template if isinstance(template, str) else None


def _eos_ids(folder: Path, backend: Tokenizer, eos_token: str | None) -> tuple[int, ...]:
    ids: list[int] = []
    declared = read_json(folder / "generation_config.json").get("eos_token_id")
    if declared is None:
        declared = read_json(folder / "config.json").get("eos_token_id")
    if declared is not None:
        ids.extend(declared if isinstance(declared, list) else [declared])
    spelled = backend.token_to_id(eos_token) if eos_token else None
    if spelled is not None:
        ids.append(spelled)
    return tuple(dict.fromkeys(ids))
