from __future__ import annotations

from pathlib import Path

import pytest
from small_run import config, env

from sortie.core.completion import SamplingParams
from sortie.core.errors import UsageError
from sortie.core.run_folder import RunFolder
from sortie.inference.client import SampleRequest
from sortie.orchestrator.loop import train_run
from sortie.orchestrator.session import LocalSession, open_session


async def test_a_finished_run_is_served_with_its_last_adapter(model: Path, tmp_path: Path) -> None:
    summary = await train_run(config(model), envs=[env()], runs=tmp_path, name="r", say=lambda _: None)
    async with open_session(str(model), run=RunFolder.open("r", tmp_path)) as session:
        assert isinstance(session, LocalSession)
        assert session.policy is not None
        assert session.policy.digest == summary.policy.digest
        request = SampleRequest(prompt=[1, 2, 3], params=SamplingParams(max_tokens=4), policy=session.policy)
        trained = (await session.client.sample(request))[0]
        base = (await session.client.sample(SampleRequest(prompt=[1, 2, 3], params=request.params)))[0]
    assert trained.version == session.policy
    assert trained.logprobs != base.logprobs


async def test_a_run_without_a_checkpoint_is_refused_in_one_line(model: Path, tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "fresh")
    folder.close()
    with pytest.raises(UsageError, match="'fresh' has no checkpoint yet"):
        async with open_session(str(model), run=folder):
            pass


async def test_options_without_effect_are_errors(model: Path) -> None:
    """Pain K1."""
    with pytest.raises(UsageError, match="--base-url has no effect"):
        async with open_session(str(model), base_url="http://localhost:1/v1"):
            pass
