"""Clients of OpenAI-compatible servers, for evaluation.

`ChatServer` speaks messages: with the MessageRenderer, it unpacks a prompt's ids into messages and tools and packs the
answer. `CompletionServer` speaks tokens to /v1/completions, with the renderer of a local model folder. Both leave
logprobs out unless the server returned ids and logprobs that match one to one: ids are never made up from text and
then trained on, so such turns are counted as untrainable.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from sortie.core.completion import Completion, CompletionEnd
from sortie.core.errors import ModelError, UsageError
from sortie.inference.client import SampleRequest
from sortie.inference.renderers.base import Renderer
from sortie.inference.renderers.messages import MessageRenderer

KEY_VARIABLE = "OPENAI_API_KEY"
T = TypeVar("T")


class Server:
    """One model of one OpenAI-compatible server. Connections open on first use; `aclose` ends them."""

    def __init__(self, model: str, *, base_url: str | None = None, timeout_s: float = 120.0, retries: int = 2) -> None:
        """`base_url` ends in /v1; None: OpenAI's own. `retries` counts the further tries of one request.

        Raises: UsageError if there is no key in the environment and the server is OpenAI's own.
        """
        if base_url is None and not os.environ.get(KEY_VARIABLE):
            raise UsageError(f"no key: set {KEY_VARIABLE}, or give --base-url for a server of your own")
        from openai import AsyncOpenAI

        self.model, self.base_url = model, base_url
        self.timeout_s, self.retries = timeout_s, retries
        key = os.environ.get(KEY_VARIABLE) or "none"  # servers of one's own ask for none, the SDK does
        self.client = AsyncOpenAI(api_key=key, base_url=base_url, timeout=timeout_s, max_retries=retries)

    def __repr__(self) -> str:
        key = "***" if os.environ.get(KEY_VARIABLE) else None
        return f"{type(self).__name__}(model={self.model!r}, base_url={self.base_url!r}, key={key})"

    async def aclose(self) -> None:
        """Close the connections; safe to call twice."""
        await self.client.close()

    async def _ask(self, request: SampleRequest, call: Callable[[], Awaitable[T]]) -> T:
        """One SDK call, with its errors in our words.

        Raises: UsageError for what retrying cannot mend (key, model name, request), ModelError for the rest.
        """
        import openai

        if request.policy is not None:
            raise UsageError(f"{self.model!r} is served elsewhere: it cannot serve the policy {request.policy}")
        where = f"{self.model!r} at {self.base_url or 'api.openai.com'}"
        try:
            async with asyncio.timeout(request.deadline_s):
                return await call()
        except (TimeoutError, openai.APITimeoutError):
            waited = min(request.deadline_s or self.timeout_s, self.timeout_s)
            raise ModelError(f"{where} did not answer within {waited:g} s") from None
        except openai.APIConnectionError as error:
            raise ModelError(f"cannot reach {where}: {error.__cause__ or error}; is the server up?") from None
        except (openai.AuthenticationError, openai.PermissionDeniedError):
            raise UsageError(f"{where} refused the key: check {KEY_VARIABLE}") from None
        except openai.RateLimitError as error:
            tries = self.retries + 1
            raise ModelError(f"{where} is over its rate limit after {tries} tries: {_reason(error)}") from None
        except openai.InternalServerError as error:
            raise ModelError(f"{where} failed with status {error.status_code}: {_reason(error)}") from None
        except openai.APIStatusError as error:
            raise UsageError(f"{where} refused the request with status {error.status_code}: {_reason(error)}") from None
        except openai.OpenAIError as error:
            raise ModelError(f"{where} sent an answer that cannot be read: {_reason(error)}") from None


class ChatServer(Server):
    """Samples through /v1/chat/completions, tool calls included. Goes with `ChatServer.renderer`."""

    renderer = MessageRenderer()

    async def sample(self, request: SampleRequest) -> list[Completion]:
        """Ask for `request.n` answers."""
        messages, tools = self.renderer.unpack(request.prompt)
        options = _sampling(request)
        # OpenAI's newer models refuse the old name, most other servers know no other.
        options["max_completion_tokens" if self.base_url is None else "max_tokens"] = request.params.max_tokens
        if tools:
            options["tools"] = tools
        if request.params.stop:
            options["stop"] = list(request.params.stop)
        answer = await self._ask(
            request,
            lambda: self.client.chat.completions.create(
                model=self.model,
                messages=messages,  # type: ignore[arg-type]  # plain dicts in the SDK's shape
                **options,
            ),
        )
        return [self._pack(choice) for choice in _choices(answer, request.n)]

    def _pack(self, choice: Any) -> Completion:
        wire: dict[str, Any] = {"role": "assistant", "content": choice.message.content or ""}
        if choice.message.tool_calls:
            wire["tool_calls"] = [
                {
                    "id": call.id or "",
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments or ""},
                }
                for call in choice.message.tool_calls
                if getattr(call, "function", None) is not None
            ]
        return Completion(token_ids=self.renderer.spell_wire(wire), logprobs=None, stop_reason=_end(choice))


class CompletionServer(Server):
    """Samples through /v1/completions with prompt ids; `renderer` is that of the same model in a local folder."""

    def __init__(self, model: str, renderer: Renderer, *, seeded: bool = True, **options: Any) -> None:
        """`options` are those of Server. Without `seeded` the request's seed is not sent, and the server draws as it
        likes: vLLM 0.32's CPU build dies of a seed when it computes a prompt in more than one piece."""
        super().__init__(model, **options)
        self.renderer = renderer
        self.seeded = seeded

    async def sample(self, request: SampleRequest) -> list[Completion]:
        """Ask for `request.n` continuations of the ids."""
        options = _sampling(request)
        # vLLM's and SGLang's servers take ends as ids, and return ids on request. The request's ends are all there are:
        # without `ignore_eos` the model folder's own would end it too. Other servers ignore these keys and go by text.
        options["extra_body"] |= {
            "return_token_ids": True,
            "stop_token_ids": list(request.params.stop_ids),
            "ignore_eos": True,
        }
        if not self.seeded:
            del options["seed"]
        stops = [self.renderer.decode([token]) for token in request.params.stop_ids]
        answer = await self._ask(
            request,
            lambda: self.client.completions.create(
                model=self.model,
                prompt=list(request.prompt),
                max_tokens=request.params.max_tokens,
                stop=[*stops, *request.params.stop],
                logprobs=0,
                **options,
            ),
        )
        return [self._completion(choice, request) for choice in _choices(answer, request.n)]

    def _completion(self, choice: Any, request: SampleRequest) -> Completion:
        end = _end(choice)
        ids = getattr(choice, "token_ids", None)
        if not isinstance(ids, list) or not ids:
            said = self.renderer.encode(choice.text)
            closing = list(request.params.stop_ids[:1]) if end == "stop" else []
            return Completion(token_ids=said + closing, logprobs=None, stop_reason=end)
        logprobs = choice.logprobs.token_logprobs if choice.logprobs else None
        # Servers report logprobs of the untempered law.
        params = request.params
        plain = params.temperature == 1.0 and params.top_p == 1.0 and params.top_k == 0
        known = plain and isinstance(logprobs, list) and len(logprobs) == len(ids) and None not in logprobs
        return Completion(token_ids=ids, logprobs=logprobs if known else None, stop_reason=end)


def _sampling(request: SampleRequest) -> dict[str, Any]:
    """The options that both endpoints share."""
    params = request.params
    return {
        "n": request.n,
        "temperature": params.temperature,
        "top_p": params.top_p,
        "seed": params.seed % 2**31,
        "extra_body": {"top_k": params.top_k} if params.top_k > 0 else {},
    }


def _choices(answer: Any, n: int) -> list[Any]:
    """Raises: UsageError if this is no answer of such a server, ModelError if it answered another number of times."""
    if not hasattr(answer, "choices"):
        raise UsageError("the server does not speak the OpenAI protocol: does its --base-url end in /v1?")
    choices = list(answer.choices or ())
    if len(choices) != n:
        raise ModelError(f"the server gave {len(choices)} answers, {n} were asked for")
    return choices


def _end(choice: Any) -> CompletionEnd:
    return "length" if choice.finish_reason == "length" else "stop"


def _reason(error: Exception) -> str:
    """The server's message, on one line."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    return " ".join(str(message or error).split())[:300]
