"""The probe agrees on a sound engine, and sees weights and KV that are not the published ones. Pain I1, I2."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sortie.core.policy import PolicyVersion
from sortie.inference.embedded.config import EngineConfig
from sortie.orchestrator.checks import PROBE_TOLERANCE, probe_warnings
from sortie.orchestrator.probe import probe
from sortie.orchestrator.session import open_local
from tiny import random_lora


async def test_engine_and_plain_pass_agree_under_each_published_version(model: Path) -> None:
    async with open_local(str(model), engine=EngineConfig(kv_memory_mb=16)) as session:
        assert (await probe(session, None, None)).gap < PROBE_TOLERANCE["float32"]
        for number in range(2):
            lora = random_lora(session.decoder, seed=number)
            version = PolicyVersion("p", number, lora.digest())
            await session.engine.publish(version, lora)
            found = await probe(session, version, lora, temperature=0.7)
            assert found.gap < PROBE_TOLERANCE["float32"]
            assert len(found.served) > 0


async def test_kv_of_an_earlier_policy_shows(model: Path) -> None:
    """The newer version is given the digest of the older one, under which its KV is still found."""
    async with open_local(str(model), engine=EngineConfig(kv_memory_mb=16)) as session:
        old, new = random_lora(session.decoder, seed=1), random_lora(session.decoder, seed=2)
        version = PolicyVersion("p", 1, old.digest())
        await session.engine.publish(version, old)
        await probe(session, version, old)
        kept, fused = session.engine.adapters.loaded[version.digest]
        session.engine.adapters.loaded[version.digest] = (kept, new.fuse())
        found = await probe(session, version, new)
        assert "KV kept from an earlier policy" in probe_warnings(found, "float32")[0]
        session.engine.adapters.loaded[version.digest] = (kept, fused)
        assert probe_warnings(await probe(session, version, old), "float32") == []


async def test_an_adapter_that_was_never_taken_up_shows(model: Path) -> None:
    async with open_local(str(model), engine=EngineConfig(kv_memory_mb=16)) as session:
        found = await probe(session, None, random_lora(session.decoder))
        assert found.gap > 10 * PROBE_TOLERANCE["float32"]
        assert replace(found, plain=found.served).gap == pytest.approx(0)
