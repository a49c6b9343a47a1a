"""Against a real HTTP server on this machine."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from sortie.core.completion import SamplingParams
from sortie.core.errors import ModelError, UsageError
from sortie.core.messages import assistant, system, tool_result, user
from sortie.core.policy import PolicyVersion
from sortie.core.tool_schema import ToolSchema
from sortie.inference.client import SampleRequest
from sortie.inference.compatible import ChatServer, CompletionServer, Server
from sortie.inference.renderers.messages import MessageRenderer

RENDERER = MessageRenderer()
ADD = ToolSchema(name="add", description="Adds.", parameters={"type": "object", "properties": {}})
Answer = tuple[int, Any]


@dataclass
class Backend:
    """A server that answers from a list and keeps what it was sent."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    seen: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    """A request came that no answer is left for: it is never answered."""
    hung_up: threading.Event = field(default_factory=threading.Event)
    """The client closed the connection of that request."""


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    state = Backend()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            state.seen.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            state.paths.append(self.path)
            if not state.answers:
                state.arrived.set()
                self.connection.settimeout(30)
                self.close_connection = self.connection.recv(1) == b""
                state.hung_up.set()
                return
            status, body = state.answers.pop(0)
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "text/html" if isinstance(body, str) else "application/json")
            self.send_header("retry-after-ms", "1")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Keep test output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


@asynccontextmanager
async def chat(url: str, **options: Any) -> AsyncIterator[ChatServer]:
    client = ChatServer("m", base_url=url, **options)
    try:
        yield client
    finally:
        await client.aclose()


def ask(prompt: list[int], **fields: Any) -> SampleRequest:
    return SampleRequest(prompt=prompt, params=SamplingParams(max_tokens=9, temperature=0.5, seed=7), **fields)


def reply(content: str | None = None, *calls: dict[str, Any], finish: str = "stop") -> Answer:
    message = {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return 200, {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}


def wire_call(arguments: str, id: str = "c1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "add", "arguments": arguments}}


def refusal(status: int, message: str = "no") -> Answer:
    return status, {"error": {"message": message}}


async def test_messages_and_tools_arrive_as_they_were_rendered(backend: Backend) -> None:
    backend.answers = [reply("Hi é")]
    async with chat(backend.url) as client:
        (said,) = await client.sample(ask(RENDERER.render([system("Be brief."), user("Hé\u2028")], [ADD])))
    (sent,) = backend.seen
    assert sent["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hé\u2028"}]
    assert sent["tools"] == [ADD.to_openai()]
    assert (sent["max_tokens"], sent["temperature"], sent["seed"]) == (9, 0.5, 7)
    assert RENDERER.parse(said.token_ids) == assistant("Hi é")


async def test_an_answer_is_never_trainable(backend: Backend) -> None:
    """Pain A2, A4: no logprobs, so no ids are made up to train on."""
    backend.answers = [reply("Hi", finish="length")]
    async with chat(backend.url) as client:
        (said,) = await client.sample(ask(RENDERER.render([user("x")])))
    assert said.logprobs is None
    assert said.stop_reason == "length"


async def test_tool_calls_go_both_ways_and_the_servers_own_words_go_back_to_it(backend: Backend) -> None:
    call, bad = wire_call('{"a":1}'), wire_call('{"a":', "c2")
    backend.answers = [reply(None, call, bad), reply("2")]
    history, prompt = [user("1 + 1?")], RENDERER.render([user("1 + 1?")], [ADD])
    async with chat(backend.url) as client:
        (said,) = await client.sample(ask(prompt))
        message = RENDERER.parse(said.token_ids)
        good, malformed = message.tool_calls
        assert (good.id, good.arguments, good.error) == ("c1", {"a": 1}, None)
        assert malformed.error is not None
        results = [tool_result("2", "add", "c1"), tool_result("error", "add", "c2")]
        grown = RENDERER.extend([*history, message], said.token_ids, results, [ADD])
        await client.sample(ask([*prompt, *said.token_ids, *grown]))
    _, assistant_sent, first, second = backend.seen[1]["messages"]
    assert assistant_sent["tool_calls"] == [call, bad]
    assert (first["tool_call_id"], second["tool_call_id"]) == ("c1", "c2")
    assert backend.seen[1]["tools"] == [ADD.to_openai()]


async def test_calls_written_as_text_are_read_by_the_one_parser(backend: Backend) -> None:
    """Pain C5; the result goes back as text, since the server knows of no call."""
    backend.answers = [reply('{"name": "add", "arguments": {"a": 1}}'), reply("2")]
    prompt = RENDERER.render([user("x")], [ADD])
    async with chat(backend.url) as client:
        (said,) = await client.sample(ask(prompt))
        message = RENDERER.parse(said.token_ids)
        assert [call.name for call in message.tool_calls] == ["add"]
        grown = RENDERER.extend([user("x"), message], said.token_ids, [tool_result("2", "add")])
        await client.sample(ask([*prompt, *said.token_ids, *grown]))
    assert backend.seen[1]["messages"][-1] == {"role": "user", "content": "<tool_response>2</tool_response>"}


async def test_worked_examples_get_the_ids_that_servers_insist_on(backend: Backend) -> None:
    backend.answers = [reply("ok")]
    message = RENDERER.parse(RENDERER.encode('{"name": "add", "arguments": {"a": 1}}'))
    example = [user("x"), message, tool_result("2", "add"), assistant("2")]
    async with chat(backend.url) as client:
        await client.sample(ask(RENDERER.render([*example, user("y")])))
    called, answered = backend.seen[0]["messages"][1:3]
    assert called["tool_calls"][0]["id"] == answered["tool_call_id"] != ""


@pytest.mark.parametrize(
    ("answers", "error", "words"),
    [
        ([refusal(401)], UsageError, "OPENAI_API_KEY"),
        ([refusal(404, "no model m")], UsageError, "404: no model m"),
        ([refusal(400, "bad tool")], UsageError, "400: bad tool"),
        ([refusal(429, "slow down")] * 3, ModelError, "after 3 tries: slow down"),
        ([refusal(503, "loading")] * 3, ModelError, "503: loading"),
        ([(200, "<html>hello</html>")], UsageError, "end in /v1"),
        ([(200, {"choices": []})], ModelError, "0 answers, 1 were asked for"),
    ],
)
async def test_every_failure_of_a_server_is_one_clear_line(
    backend: Backend, answers: list[Answer], error: type[Exception], words: str
) -> None:
    backend.answers = list(answers)
    async with chat(backend.url) as client:
        with pytest.raises(error, match=words) as caught:
            await client.sample(ask(RENDERER.render([user("x")])))
    assert "\n" not in str(caught.value)
    assert "sk-secret" not in str(caught.value)
    assert backend.answers == []  # tried as often as promised, not more


async def test_a_passing_failure_is_retried(backend: Backend) -> None:
    backend.answers = [refusal(429), refusal(500), reply("at last")]
    async with chat(backend.url) as client:
        (said,) = await client.sample(ask(RENDERER.render([user("x")])))
    assert RENDERER.parse(said.token_ids).content == "at last"


async def test_a_server_that_is_not_there_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with socket.socket() as taken:  # bound and not listening: every connection is refused
        taken.bind(("127.0.0.1", 0))
        async with chat(f"http://127.0.0.1:{taken.getsockname()[1]}/v1", retries=0) as client:
            with pytest.raises(ModelError, match=r"cannot reach 'm' at http://127.0.0.1.*is the server up"):
                await client.sample(ask(RENDERER.render([user("x")])))


async def test_a_server_that_hangs_meets_the_deadline(backend: Backend) -> None:
    async with chat(backend.url) as client:
        with pytest.raises(ModelError, match=r"did not answer within 0\.05 s"):
            await client.sample(ask(RENDERER.render([user("x")]), deadline_s=0.05))


async def test_cancelling_aborts_the_request(backend: Backend) -> None:
    async with chat(backend.url) as client:
        waiting = asyncio.create_task(client.sample(ask(RENDERER.render([user("x")]))))
        assert await asyncio.to_thread(backend.arrived.wait, 10)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await asyncio.to_thread(backend.hung_up.wait, 10)


def test_no_key_for_openai_itself_is_an_error_before_any_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="set OPENAI_API_KEY, or give --base-url"):
        Server("gpt")


def test_the_key_is_in_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert repr(Server("gpt")) == "Server(model='gpt', base_url=None, key=***)"


async def test_a_pinned_policy_is_refused(backend: Backend) -> None:
    async with chat(backend.url) as client:
        with pytest.raises(UsageError, match="cannot serve the policy a@1"):
            await client.sample(ask([], policy=PolicyVersion("a", 1, "d")))
    assert backend.seen == []


def completion(text: str, **fields: Any) -> Answer:
    choice = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": None, **fields}
    return 200, {"id": "1", "object": "text_completion", "created": 0, "model": "m", "choices": [choice]}


async def complete(backend: Backend, *answers: Answer, temperature: float = 1.0, stop_ids: tuple[int, ...] = ()) -> Any:
    backend.answers = list(answers)
    client = CompletionServer("m", RENDERER, base_url=backend.url)
    try:
        params = SamplingParams(max_tokens=4, temperature=temperature, stop_ids=stop_ids)
        return (await client.sample(SampleRequest(prompt=[1, 2, 3], params=params)))[0]
    finally:
        await client.aclose()


async def test_a_local_tokenizer_sends_ids_and_keeps_the_ids_that_come_back(backend: Backend) -> None:
    """Pain A1, A2."""
    said = await complete(backend, completion("ab", token_ids=[8, 9], logprobs={"token_logprobs": [-0.5, -1.0]}))
    assert backend.paths == ["/v1/completions"]
    assert backend.seen[0]["prompt"] == [1, 2, 3]
    assert (list(said.token_ids), list(said.logprobs)) == ([8, 9], [-0.5, -1.0])


@pytest.mark.parametrize("logprobs", [None, {"token_logprobs": [-0.5]}, {"token_logprobs": [None, -1.0]}])
async def test_logprobs_that_do_not_match_the_ids_are_dropped_not_padded(backend: Backend, logprobs: Any) -> None:
    """Pain A4."""
    said = await complete(backend, completion("ab", token_ids=[8, 9], logprobs=logprobs))
    assert list(said.token_ids) == [8, 9]
    assert said.logprobs is None


async def test_logprobs_of_another_temperature_are_dropped(backend: Backend) -> None:
    answer = completion("ab", token_ids=[8, 9], logprobs={"token_logprobs": [-0.5, -1.0]})
    assert (await complete(backend, answer, temperature=0.5)).logprobs is None


async def test_a_server_that_returns_only_text_gives_an_untrainable_turn(backend: Backend) -> None:
    """Pain A4: ids encoded from text are never paired with the server's logprobs."""
    said = await complete(backend, completion("abcdef", logprobs={"token_logprobs": [-0.5, -1.0]}))
    assert RENDERER.decode(said.token_ids) == "abcdef"
    assert said.logprobs is None


async def test_a_turn_ends_at_the_tokens_of_the_request_and_at_no_other(backend: Backend) -> None:
    """Ids for servers that take ids (vLLM never sees a control token in its text), text for the others."""
    await complete(backend, completion("ab"), stop_ids=tuple(RENDERER.encode("x")))
    await complete(backend, completion("ab"))
    ending, endless = backend.seen
    assert (ending["stop_token_ids"], ending["stop"]) == (RENDERER.encode("x"), ["x"])
    assert (endless["stop_token_ids"], endless["stop"]) == ([], [])
    assert ending["ignore_eos"] is endless["ignore_eos"] is True


async def test_a_text_only_answer_is_closed_with_the_end_it_met(backend: Backend) -> None:
    said = await complete(backend, completion("ab"), stop_ids=(5, 6))
    assert list(said.token_ids) == [*RENDERER.encode("ab"), 5]


async def test_a_seed_is_sent_unless_it_is_not_wanted(backend: Backend) -> None:
    backend.answers = [completion("ab"), completion("ab")]
    for seeded in (True, False):
        client = CompletionServer("m", RENDERER, base_url=backend.url, seeded=seeded)
        await client.sample(ask([1]))
        await client.aclose()
    assert [request.get("seed") for request in backend.seen] == [7, None]
