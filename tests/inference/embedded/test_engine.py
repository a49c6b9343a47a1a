from __future__ import annotations

import asyncio
import random

import pytest
import torch

from sortie.core.completion import Completion, SamplingParams
from sortie.core.errors import BudgetError, ModelError
from sortie.core.policy import PolicyVersion
from sortie.inference.client import SampleRequest
from sortie.inference.embedded.config import EngineConfig
from sortie.inference.embedded.engine import EmbeddedEngine
from sortie.models.lora import Lora
from tiny import flat_logprobs, random_lora, tiny_decoder

DECODER = tiny_decoder()
SMALL = EngineConfig(kv_memory_mb=16)


def request(prompt: list[int], max_tokens: int = 12, **settings: object) -> SampleRequest:
    outer = {k: settings.pop(k) for k in ("policy", "n", "deadline_s", "priority") if k in settings}
    return SampleRequest(prompt=prompt, params=SamplingParams(max_tokens=max_tokens, **settings), **outer)  # type: ignore[arg-type]


async def running_in(engine: EmbeddedEngine) -> None:
    """Wait until the engine's thread has taken a request up."""
    while not engine.batch.running:  # noqa: ASYNC110 - the batch is another thread's, it has no event to wait for
        await asyncio.sleep(0)


def check_against_plain_pass(
    prompt: list[int], c: Completion, lora: Lora | None = None, temperature: float = 1.0
) -> None:
    """Logprobs within 1e-4 of one forward pass over prompt and completion."""
    with torch.no_grad():
        law = flat_logprobs(DECODER, [*prompt, *c.token_ids], lora, temperature)[len(prompt) - 1 : -1]
    expected = law.gather(1, torch.tensor(c.token_ids)[:, None])[:, 0]
    assert c.logprobs is not None
    torch.testing.assert_close(torch.tensor(c.logprobs), expected, atol=1e-4, rtol=0)


def prompts(seed: int, count: int = 12) -> list[list[int]]:
    """Prompts of many lengths, many of them sharing a beginning."""
    rng = random.Random(seed)
    stems = [[rng.randrange(300) for _ in range(rng.randrange(1, 40))] for _ in range(3)]
    return [rng.choice(stems) + [rng.randrange(300) for _ in range(rng.randrange(1, 12))] for _ in range(count)]


async def test_greedy_tokens_and_logprobs_equal_a_plain_forward_pass() -> None:
    async with EmbeddedEngine(DECODER, SMALL) as engine:
        for prompt in prompts(0, 4):
            (c,) = await engine.sample(request(prompt, temperature=0.0))
            at = list(prompt)
            for token in c.token_ids:
                with torch.no_grad():
                    assert token == int(flat_logprobs(DECODER, at)[-1].argmax())
                at.append(token)
            check_against_plain_pass(prompt, c)


@pytest.mark.parametrize("seed", range(4))
async def test_neighbours_join_time_sharing_and_eviction_change_no_token(seed: int) -> None:
    """The design's randomness rule: a completion depends on its key alone."""
    rng = random.Random(seed)
    jobs = [request(p, rng.randrange(1, 20), seed=rng.randrange(2**40), temperature=0.8) for p in prompts(seed)]
    async with EmbeddedEngine(DECODER, SMALL) as engine:
        alone = [(await engine.sample(job))[0] for job in jobs]
    small = EngineConfig(max_batch=5, kv_memory_mb=16, block_size=4, max_prefill_tokens=16)
    async with EmbeddedEngine(DECODER, small) as engine:
        engine.batch.pool.free = engine.batch.pool.free[:40]  # so few blocks that eviction and waiting must happen

        async def late(job: SampleRequest) -> Completion:
            for _ in range(rng.randrange(30)):
                await asyncio.sleep(0)
            return (await engine.sample(job))[0]

        together = await asyncio.gather(*map(late, rng.sample(jobs, len(jobs)) + jobs))
    expected = {(tuple(j.prompt), j.params.seed): c for j, c in zip(jobs, alone, strict=True)}
    assert {c.token_ids for c in together} == {c.token_ids for c in expected.values()}
    for job, c in zip(jobs, together[len(jobs) :], strict=True):
        assert c.token_ids == expected[tuple(job.prompt), job.params.seed].token_ids
        check_against_plain_pass(list(job.prompt), c, temperature=0.8)


async def test_each_distinct_prefix_is_computed_once() -> None:
    """Siblings sent together, then the next turn of one: only tokens never seen are computed."""
    prompt = list(range(60))
    async with EmbeddedEngine(DECODER, SMALL) as engine:
        first, *_ = await asyncio.gather(*(engine.sample(request([*prompt, 7], seed=i)) for i in range(8)))
        assert engine.metrics()["prefilled_tokens"] == 61
        turn_two = [*prompt, 7, *first[0].token_ids, 8, 9, 10]
        await engine.sample(request(turn_two))
        # The token drawn last was never fed to the model: it and the three new ones are computed.
        assert engine.metrics()["prefilled_tokens"] == 61 + 4


async def test_versions_share_a_batch_and_never_a_prefix() -> None:
    """KV belongs to (tokens, version): a stale prefix would give other logprobs. Pain I6, G22."""
    one, two = random_lora(DECODER, 1), random_lora(DECODER, 2, rank=2)
    versions = {"one": PolicyVersion("one", 0, one.digest()), "two": PolicyVersion("two", 0, two.digest())}
    prompt = list(range(40))
    async with EmbeddedEngine(DECODER, SMALL) as engine:
        await engine.publish(versions["one"], one)
        await engine.publish(versions["two"], two)
        for _ in range(2):  # the second time, every prefix is cached
            base, first, second = await asyncio.gather(
                engine.sample(request(prompt)),
                engine.sample(request(prompt, policy=versions["one"])),
                engine.sample(request(prompt, policy=versions["two"])),
            )
            check_against_plain_pass(prompt, base[0])
            check_against_plain_pass(prompt, first[0], one)
            check_against_plain_pass(prompt, second[0], two)
        assert first[0].version == versions["one"]
        assert len({base[0].logprobs, first[0].logprobs, second[0].logprobs}) == 3


async def test_a_version_stays_while_a_request_is_pinned_to_it() -> None:
    """Pain I5, I6: newer versions push older ones out, but not from under a running request."""
    loras = [random_lora(DECODER, i) for i in range(4)]
    versions = [PolicyVersion("policy", i, lora.digest()) for i, lora in enumerate(loras)]
    async with EmbeddedEngine(DECODER, EngineConfig(kv_memory_mb=16, kept_versions=1)) as engine:
        await engine.publish(versions[0], loras[0])
        running = asyncio.create_task(engine.sample(request([1, 2, 3], 300, policy=versions[0])))
        await running_in(engine)
        for version, lora in zip(versions[1:], loras[1:], strict=True):
            await engine.publish(version, lora)
        check_against_plain_pass([1, 2, 3], (await running)[0], loras[0])
        with pytest.raises(ModelError, match="policy@0 is not loaded; loaded: policy@3"):
            await engine.sample(request([1, 2, 3], policy=versions[0]))


async def test_a_cancelled_request_leaves_the_batch_and_returns_its_blocks() -> None:
    async with EmbeddedEngine(DECODER, SMALL) as engine:
        task = asyncio.create_task(engine.sample(request([1, 2, 3], 400)))
        await running_in(engine)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await engine.sample(request([4], 1))  # a step later the abort has been taken up
        assert not engine.batch.running
        assert engine.batch.reserved == 0


async def test_a_request_past_its_deadline_fails_and_others_go_on() -> None:
    """Pain C19: every model call has a limit."""
    async with EmbeddedEngine(DECODER, SMALL) as engine:
        late, fine = await asyncio.gather(
            engine.sample(request([1, 2, 3], 400, deadline_s=0.0)),
            engine.sample(request([1, 2], 5)),
            return_exceptions=True,
        )
    assert isinstance(late, ModelError)
    assert isinstance(fine, list)


async def test_stop_ids_and_stop_strings_end_a_turn_and_are_kept() -> None:
    spell = "".join
    async with EmbeddedEngine(DECODER, SMALL, decode=lambda ids: spell(f"<{i}>" for i in ids)) as engine:
        (free,) = await engine.sample(request([5, 6], 30, seed=3))
        third, fifth = free.token_ids[2], free.token_ids[4]
        (by_id,) = await engine.sample(request([5, 6], 30, seed=3, stop_ids=(third,)))
        (by_text,) = await engine.sample(request([5, 6], 30, seed=3, stop=(f"<{fifth}>",)))
    cut = free.token_ids.index(third) + 1, free.token_ids.index(fifth) + 1
    assert (by_id.token_ids, by_id.stop_reason) == (free.token_ids[: cut[0]], "stop")
    assert (by_text.token_ids, by_text.stop_reason) == (free.token_ids[: cut[1]], "stop")
    assert (len(free.token_ids), free.stop_reason) == (30, "length")


async def test_samples_of_one_request_differ_and_share_its_prompt() -> None:
    async with EmbeddedEngine(DECODER, SMALL) as engine:
        out = await engine.sample(request(list(range(30)), 10, n=3))
        assert len({c.token_ids for c in out}) == 3
        assert engine.metrics()["prefilled_tokens"] == 30


async def test_what_cannot_fit_is_refused_before_it_is_sent() -> None:
    """Pain B8."""
    async with EmbeddedEngine(DECODER, SMALL) as engine:
        with pytest.raises(BudgetError, match="exceeds the window of 512"):
            await engine.sample(request([1] * 510, 10))
        with pytest.raises(BudgetError, match="empty prompt"):
            await engine.sample(request([], 10))


async def test_an_engine_that_dies_fails_every_request_with_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pain G10, K9: a dead thread is never a hang."""
    async with EmbeddedEngine(DECODER, SMALL) as engine:
        monkeypatch.setattr(engine.runner, "run", lambda *_: 1 / 0)
        outcomes = await asyncio.gather(*(engine.sample(request([i + 1])) for i in range(3)), return_exceptions=True)
        with pytest.raises(ModelError, match="the engine died: ZeroDivisionError"):
            await engine.sample(request([1]))
    assert all(isinstance(o, ModelError) and "ZeroDivisionError" in str(o) for o in outcomes)


async def test_closing_fails_what_is_still_running() -> None:
    engine = EmbeddedEngine(DECODER, SMALL)
    task = asyncio.create_task(engine.sample(request([1, 2, 3], 500)))
    await running_in(engine)
    engine.close()
    with pytest.raises(ModelError, match="closed"):
        await task


async def test_all_blocks_come_back() -> None:
    async with EmbeddedEngine(DECODER, SMALL) as engine:
        await asyncio.gather(*(engine.sample(request(p, seed=i, n=1 + i % 3)) for i, p in enumerate(prompts(3, 30))))
        cache, pool = engine.batch.cache, engine.batch.pool
        for version in list(cache.roots):
            cache.forget(version)
        assert len(pool.free) == pool.blocks
        assert engine.batch.reserved == 0


async def test_bf16_runs_and_its_mismatch_is_small() -> None:
    """bf16 is measured, not promised: the mean difference stays within rounding of 8 bits."""
    decoder = tiny_decoder(dtype=torch.bfloat16)
    async with EmbeddedEngine(decoder, SMALL) as engine:
        (c,) = await engine.sample(request(list(range(20)), 20))
    with torch.no_grad():
        law = flat_logprobs(decoder, [*range(20), *c.token_ids]).float()[19:-1]
    expected = law.gather(1, torch.tensor(c.token_ids)[:, None])[:, 0]
    assert (torch.tensor(c.logprobs) - expected).abs().mean() < 0.1
