from __future__ import annotations

import pytest

from sortie.core.completion import Completion, SamplingParams
from sortie.core.errors import ModelError
from sortie.core.messages import ToolCall, assistant, user
from sortie.core.policy import PolicyVersion
from sortie.inference.client import SampleRequest
from sortie.inference.renderers.messages import MessageRenderer
from sortie.inference.scripted import ScriptedClient

PARAMS = SamplingParams(max_tokens=100)
RENDERER = MessageRenderer()
CALL = assistant("", ToolCall(name="add", arguments={"a": 1}))


def ask(prompt: str = "x", **fields: object) -> SampleRequest:
    return SampleRequest(prompt=RENDERER.render([user(prompt)]), params=PARAMS, **fields)  # type: ignore[arg-type]


async def test_replies_come_in_order_and_requests_are_kept() -> None:
    client = ScriptedClient.from_texts(RENDERER, ["one", CALL])
    first, second = ask("1"), ask("2")
    (said,) = await client.sample(first)
    assert RENDERER.parse(said.token_ids) == assistant("one")
    (said,) = await client.sample(second)
    assert RENDERER.parse(said.token_ids) == CALL
    assert client.requests == [first, second]


async def test_a_script_that_runs_out_says_after_how_many_replies() -> None:
    client = ScriptedClient.from_texts(RENDERER, ["one"])
    await client.sample(ask())
    with pytest.raises(ModelError, match="run out after 1 replies"):
        await client.sample(ask())


async def test_a_policy_answers_from_the_request() -> None:
    def echo(request: SampleRequest) -> str:
        messages, _ = RENDERER.unpack(request.prompt)
        return f"you said {messages[-1]['content']}"

    client = ScriptedClient(echo, renderer=RENDERER)
    replies = await client.sample(ask("hello", n=2))
    assert [RENDERER.parse(reply.token_ids).content for reply in replies] == ["you said hello"] * 2


async def test_every_token_has_a_logprob_and_the_version_asked_for() -> None:
    version = PolicyVersion("a", 3, "d")
    (said,) = await ScriptedClient([[5, 6, 7]]).sample(ask(policy=version))
    assert said.version == version
    assert said.logprobs is not None
    assert len(said.logprobs) == len(said.token_ids) == 3
    assert all(-1 <= value <= 0 for value in said.logprobs)
    (again,) = await ScriptedClient([[5, 6, 7]]).sample(ask())
    assert again.logprobs == said.logprobs


async def test_a_reply_longer_than_allowed_is_cut_as_a_model_would_be() -> None:
    request = SampleRequest(prompt=[1], params=SamplingParams(max_tokens=2))
    (said,) = await ScriptedClient([[5, 6, 7]]).sample(request)
    assert (list(said.token_ids), said.stop_reason) == ([5, 6], "length")


async def test_completions_pass_unchanged_and_errors_are_raised() -> None:
    completion = Completion(token_ids=[1], logprobs=None, stop_reason="aborted")
    client = ScriptedClient([completion, ModelError("down")])
    assert await client.sample(ask()) == [completion]
    with pytest.raises(ModelError, match="down"):
        await client.sample(ask())


async def test_text_without_a_renderer_is_one_clear_line() -> None:
    with pytest.raises(ModelError, match="no renderer"):
        await ScriptedClient(["hello"]).sample(ask())
