"""Adapters and merged weights are the same model to peft and transformers as to us."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from sortie.core.errors import UsageError
from sortie.core.policy import ALL_TARGETS, LoraConfig
from sortie.models import export
from sortie.models.attention import CausalAttend
from sortie.models.config import DecoderConfig
from sortie.models.decoder import Decoder
from sortie.models.lora import Lora

# peft reads an attribute that transformers means to rename.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")

IDS = torch.arange(30) * 17 % 101
ATTENTION_ONLY = LoraConfig(rank=3, alpha=7.5, targets=("q_proj", "v_proj"))
EVERYTHING = LoraConfig(rank=4, alpha=10.0, targets=ALL_TARGETS)
BASES = {
    "llama": ("Llama", {}),
    "llama-tied": ("Llama", {"tie_word_embeddings": True}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
}


def adapter(folder: Path, config: LoraConfig = EVERYTHING) -> Lora:
    """An adapter whose B is not zero, so that it matters."""
    lora = Lora.create(config, DecoderConfig.read(folder), seed=5)
    generator = torch.Generator().manual_seed(6)
    for name, tensor in lora.tensors.items():
        if name.endswith(".B"):
            tensor.normal_(0.0, 0.1, generator=generator)
    return lora


def our_logits(folder: Path, lora: Lora | None = None) -> torch.Tensor:
    decoder, attend = Decoder.load(folder), CausalAttend([len(IDS)])
    with torch.inference_mode():
        return decoder.logits(decoder.forward(IDS, attend.positions_T, attend, lora.fuse() if lora else None))


def close(a: torch.Tensor, b: torch.Tensor, atol: float = 2e-5) -> None:
    # Relative too: the two sum in other orders, and fp32 logits of 4 are only good to some 1e-6 of themselves a layer.
    torch.testing.assert_close(a, b, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("config", [ATTENTION_ONLY, EVERYTHING], ids=["attention", "everything"])
@pytest.mark.parametrize("base", BASES)
def test_peft_loads_an_adapter_with_equal_logits(base: str, config: LoraConfig, tiny: Any, tmp_path: Path) -> None:
    """Pain I14."""
    from peft import PeftModel

    family, settings = BASES[base]
    folder, model = tiny(family, **settings)
    lora = adapter(folder, config)
    out = export.export_adapter(lora, tmp_path / "adapter", base="some/base")
    theirs = PeftModel.from_pretrained(model, out)
    assert theirs.peft_config["default"].base_model_name_or_path == "some/base"
    with torch.inference_mode():
        found = theirs(IDS[None]).logits[0]
    expected = our_logits(folder, lora)
    assert (expected - our_logits(folder)).abs().max() > 0.1
    close(found, expected)


@pytest.mark.parametrize("base", BASES)
def test_transformers_loads_merged_weights_with_equal_logits(base: str, tiny: Any, tmp_path: Path) -> None:
    """Pain I14."""
    from transformers import AutoModelForCausalLM

    family, settings = BASES[base]
    folder, _ = tiny(family, **settings)
    lora = adapter(folder)
    (folder / "tokenizer.json").write_text("{}")
    out = export.export_merged(lora, folder, tmp_path / "merged")
    assert (out / "tokenizer.json").read_text() == "{}"
    with torch.inference_mode():
        found = AutoModelForCausalLM.from_pretrained(out)(IDS[None]).logits[0]
    # Merged weights are rounded to fp32 once more, which these random layers amplify.
    close(found, our_logits(folder, lora), atol=3e-5)


def test_merging_keeps_shards_and_dtype(tiny: Any, tmp_path: Path) -> None:
    folder, model = tiny("Llama")
    (folder / "model.safetensors").unlink()
    model.to(torch.bfloat16).save_pretrained(folder, max_shard_size="20KB")
    out = export.export_merged(adapter(folder), folder, tmp_path / "merged")
    shards = sorted(path.name for path in folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    assert sorted(path.name for path in out.glob("model-*.safetensors")) == shards
    assert {t.dtype for name in shards for t in load_file(out / name).values()} == {torch.bfloat16}
    assert Decoder.load(out).parameters == Decoder.load(folder).parameters


@pytest.mark.parametrize("config", [ATTENTION_ONLY, EVERYTHING], ids=["attention", "everything"])
def test_an_adapter_comes_back_as_it_was_written(config: LoraConfig, tiny: Any, tmp_path: Path) -> None:
    """Pain I14."""
    folder, _ = tiny("Qwen2")
    lora = adapter(folder, config)
    back = export.read_adapter(export.export_adapter(lora, tmp_path / "adapter", base="b"), lora.model)
    assert back.config == lora.config
    assert back.digest() == lora.digest()


def test_an_adapter_that_peft_made_is_read_with_equal_logits(tiny: Any, tmp_path: Path) -> None:
    """Pain I14. Rank-stabilised, with target modules as peft writes them."""
    import peft

    folder, model = tiny("Llama")
    config = peft.LoraConfig(
        r=4, lora_alpha=8, target_modules=["q_proj", "down_proj"], use_rslora=True, init_lora_weights=False
    )
    theirs = peft.get_peft_model(model, config).eval()
    theirs.save_pretrained(tmp_path / "adapter")
    lora = export.read_adapter(tmp_path / "adapter", DecoderConfig.read(folder))
    assert (lora.config.targets, lora.scale) == (("q_proj", "down_proj"), 4.0)
    with torch.inference_mode():
        close(our_logits(folder, lora), theirs(IDS[None]).logits[0])


@pytest.fixture
def written(tiny: Any, tmp_path: Path) -> tuple[Path, DecoderConfig]:
    """A good adapter folder, to spoil."""
    lora = adapter(tiny("Llama")[0])
    return export.export_adapter(lora, tmp_path / "adapter", base="b"), lora.model


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("use_dora", True),
        ("bias", "all"),
        ("peft_type", "IA3"),
        ("modules_to_save", ["lm_head"]),
        ("rank_pattern", {"q": 2}),
    ],
)
def test_more_than_plain_lora_is_refused(key: str, value: Any, written: tuple[Path, DecoderConfig]) -> None:
    """Pain I4: an adapter is never applied in part."""
    folder, model = written
    path = folder / export.ADAPTER_CONFIG
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(UsageError, match=f"plain LoRA .* has {key}="):
        export.read_adapter(folder, model)


def spoil(folder: Path, change: str) -> None:
    path = folder / export.ADAPTER_WEIGHTS
    tensors = load_file(path)
    name = "base_model.model.model.layers.1.mlp.up_proj.lora_B.weight"
    if change == "missing":
        del tensors[name]
    elif change == "shape":
        tensors[name] = tensors[name][:-1].clone()
    else:
        tensors[name.replace("layers.1", "layers.9")] = tensors[name].clone()
    save_file(tensors, path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("missing", r"layers\.1\.mlp\.up_proj\.lora_B\.weight is missing"),
        ("shape", "the model needs"),
        ("extra", "fit nowhere"),
    ],
)
def test_tensors_that_do_not_match_the_model_are_named(
    change: str, reason: str, written: tuple[Path, DecoderConfig]
) -> None:
    """Pain I4."""
    folder, model = written
    spoil(folder, change)
    with pytest.raises(UsageError, match=reason):
        export.read_adapter(folder, model)


def test_a_folder_that_is_no_adapter_is_one_line(tmp_path: Path, written: tuple[Path, DecoderConfig]) -> None:
    folder, model = written
    with pytest.raises(UsageError, match="is not an adapter folder"):
        export.read_adapter(tmp_path / "nowhere", model)
    (folder / export.ADAPTER_WEIGHTS).write_bytes(b"cut short")
    with pytest.raises(UsageError, match="cannot read"):
        export.read_adapter(folder, model)


def test_an_export_never_overwrites(written: tuple[Path, DecoderConfig], tiny: Any) -> None:
    folder, _ = written
    before = (folder / export.ADAPTER_WEIGHTS).read_bytes()
    with pytest.raises(UsageError, match="not empty: export to a new folder"):
        export.export_adapter(adapter(tiny("Qwen2")[0]), folder, base="b")
    assert (folder / export.ADAPTER_WEIGHTS).read_bytes() == before


def test_a_full_disk_leaves_no_half_export(tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the library says when the disk is full becomes one line."""
    import safetensors.torch
    from safetensors import SafetensorError

    def full(*_: Any, **__: Any) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    folder, _ = tiny("Llama")
    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(UsageError, match=r"is full: free some space, or export to another folder$"):
        export.export_merged(adapter(folder), folder, tmp_path / "out" / "merged")
    assert list((tmp_path / "out").iterdir()) == []


def test_an_adapter_of_another_model_is_not_merged_in_part(tiny: Any, tmp_path: Path) -> None:
    """Pain I4."""
    larger, _ = tiny("Llama", num_hidden_layers=3)
    smaller, _ = tiny("Qwen2")
    with pytest.raises(UsageError, match="lacks 7 weights that the adapter changes"):
        export.export_merged(adapter(larger), smaller, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
