"""The model that comes with the package: it loads everywhere, and acts in the environments it was made for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import torch
import transformers

from sortie import envs, models
from sortie.inference.renderers import renderer_for
from sortie.models.attention import CausalAttend
from sortie.models.decoder import Decoder
from sortie.models.folder import count_parameters
from sortie.orchestrator.session import open_local
from sortie.rollouts.engine import RolloutEngine

MOST_BYTES = 8_000_000


@pytest.fixture(scope="module")
def folder() -> Path:
    return models.resolve("tiny")


def test_it_is_here_without_fetching_and_is_what_the_listing_says(folder: Path) -> None:
    info = models.show("tiny")
    assert (info.cached, info.folder, info.parameters) == (True, folder, count_parameters(folder))
    assert 1_000_000 <= info.parameters <= 5_000_000
    assert info.facts["vocab_size"] <= 4096
    assert sum(path.stat().st_size for path in folder.iterdir()) < MOST_BYTES
    assert models.get("tiny") == folder


def test_its_logits_equal_those_of_transformers(folder: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.apply_chat_template([{"role": "user", "content": "What is 31*67?"}], return_dict=False)
    reference = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    decoder, attend = Decoder.load(folder), CausalAttend([len(ids)])
    with torch.no_grad():
        ours = decoder.logits(decoder.forward(torch.tensor(ids), attend.positions_T, attend))
        theirs = reference(torch.tensor([ids])).logits[0]
    torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-4)


def test_its_renderer_is_found_and_spells_digits_one_by_one(folder: Path) -> None:
    renderer = renderer_for(folder, tools=True)
    assert getattr(renderer, "name", None) == "smollm"
    assert len(renderer.encode("4096")) == 4
    assert renderer.decode(renderer.encode("naïve 漢字\n<|im_end|>")) == "naïve 漢字\n<|im_end|>"
    assert renderer.stop_ids[0] not in renderer.encode("<|im_end|>")


async def test_it_calls_tools_and_leaves_much_to_learn(folder: Path) -> None:
    env = envs.build("inventory", levels=[1, 2], examples=False, heldout_per_level=30)
    async with open_local("tiny", threads=1, tools=True) as session:
        engine = RolloutEngine(session.client, session.renderer)
        played = await asyncio.gather(*(engine.run_one(env, task) for task in env.tasks("heldout")[:60]))
    solved = sum(trajectory.reward or 0.0 for trajectory in played) / len(played)
    assert 0.05 < solved < 0.8
    assert sum(bool(trajectory.tools) for trajectory in played) > len(played) / 2
