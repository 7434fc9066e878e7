"""Models behind OpenAI's chat completions protocol, on any server."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Container, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from handiwork.events.record import CostSource, Usage
from handiwork.llm.errors import (
    EmptyAnswerError,
    LLMError,
    OutputLimitError,
    ProviderError,
    RequestRejectedError,
    TemplateError,
    UnsupportedError,
)
from handiwork.llm.failure import lacking, refusal
from handiwork.llm.normalise import Normaliser
from handiwork.llm.openai_compatible.capability_cache import recall, remember
from handiwork.llm.openai_compatible.stream import Assembly, StreamError
from handiwork.llm.openai_compatible.wire import (
    Blobs,
    Wire,
    WireRule,
    dumps,
    embeddings_of,
    has_images,
    no_blobs,
    require_senses,
    schema_form,
    tool_form,
)
from handiwork.llm.price import price
from handiwork.llm.retry import SILENCE, Patience, discard, retry_after_seconds, with_retries
from handiwork.llm.types import Capabilities, Completion, Embeddings, Grammar, Message, OnDelta, ReplyForm, Tool
from handiwork.llm.window import probe

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

T = TypeVar("T")

_WIRE_RULES: tuple[tuple[WireRule, re.Pattern[str]], ...] = (
    # DeepSeek and Kimi want it in every answer of a turn with tool calls; Mistral has no such field.
    ("reasoning", re.compile(r"reasoning_content(?!.{0,60}extra inputs)", re.IGNORECASE | re.DOTALL)),
    ("short ids", re.compile(r"tool[ _]call[ _]id|tool_calls\[\d+\]\.id|tool_use[._ ]id", re.IGNORECASE)),
)


RELEASE = 0.5
"""Seconds after the cut of an endless answer: llama.cpp notices it only at the next token.

Until then it gives the next call another slot, which reads the whole conversation again.
"""

_BROKEN_OFF = frozenset({"error", "insufficient_system_resource", "network_error"})
"""Finish reasons of OpenRouter, DeepSeek and Z.ai for an answer that is not whole."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server: ``base_url`` ends before /chat/completions; "none" means no key."""

    base_url: str
    api_key: str = "none"


Connect = Callable[[], Awaitable[ServerAddress]]
"""Finds or starts the server; called before the first request and after a failed connection."""


class ChatLLM:
    """A model behind an OpenAI-compatible server.

    After a failed attempt the deltas restart from the beginning of the answer. If ``capabilities`` have no window, the
    server is asked once, before the first call. ``free`` means that the model is local and costs nothing. ``extra`` are
    fields added to every request's body, ``cuts_repetition`` ends an answer that repeats itself without end, and
    ``key_name`` is the variable or the file that holds the key.
    """

    def __init__(
        self,
        name: str,
        model: str,
        connect: Connect,
        *,
        blobs: Blobs = no_blobs,
        capabilities: Capabilities = Capabilities(vision=True, hearing=True),  # noqa: B008 - frozen, so sharing it is safe
        patience: Patience | None = None,
        free: bool = False,
        extra: Mapping[str, Any] | None = None,
        cuts_repetition: bool = False,
        key_name: str = "HANDIWORK_API_KEY",
    ) -> None:
        self._name = name
        self._model = model
        self._connect = connect
        self._probed = capabilities.window is not None
        self._capabilities = capabilities
        self._patience = patience or Patience()
        self._free = free
        self._extra = dict(extra or {})
        self._cuts_repetition = cuts_repetition
        self._key_name = key_name
        self._normaliser = Normaliser()
        self._takes_temperature = True
        self._takes_stream_options = True
        self._asked_again = False
        self._wire = Wire(blobs, model)
        self._client: AsyncClient | None = None
        self._endpoint: ServerAddress = ServerAddress("")
        self._lost = False
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        """The model string it was created from."""
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        """The model's capabilities; the window is known after ``open``."""
        return self._capabilities

    async def open(self) -> None:
        """Connect and ask the server for its window. Raises LLMError."""
        await self._open()

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        form: ReplyForm | None = None,
        on_delta: OnDelta | None = None,
        temperature: float | None = None,
    ) -> Completion:
        """Return the model's answer, with the retries of Patience; see LLM.complete."""
        body: dict[str, Any] = {
            "model": self._model,
            "stream": True,
            **({"stream_options": {"include_usage": True}} if self._takes_stream_options else {}),
            **self._extra,
        }
        if tools:
            body["tools"] = [tool_form(tool) for tool in tools]
        if isinstance(form, Grammar):
            body["grammar"] = form
        elif form is not None:
            body["response_format"] = schema_form(form)
        if temperature is not None and self._takes_temperature:
            body["temperature"] = temperature
        if urlsplit(self._endpoint.base_url).hostname == "openrouter.ai" and self._model.startswith("anthropic/"):
            body["cache_control"] = {"type": "ephemeral"}  # Claude caches a prompt only on request

        async def attempt() -> Completion:
            client = await self._open()
            require_senses(messages, self._capabilities, self._name)
            known = {*self._normaliser.rules, *self._wire.rules}
            texts = self._wire.texts(self._normaliser.normalise(messages))
            # Every message is encoded once: encoding a long conversation for every call takes milliseconds.
            content = f'{{"messages":[{",".join(texts)}],{dumps(body)[1:]}'
            try:
                return await self._attempt(client, content, on_delta)
            except LLMError as error:
                self._learn(error, tools=bool(tools), form=form, images=has_images(messages))
                if not self._adapt(error, body, known):
                    raise
                raise ProviderError(str(error), retry_after=0.0) from error

        completion = await with_retries(self._patience, attempt)
        if self._capabilities.window is None and not self._asked_again:
            # Ollama tells the window of a model once it has loaded it.
            self._asked_again, self._probed = True, False
        return completion

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return the embeddings of texts, with the retries of Patience; see EmbeddingLLM.embed."""
        vectors: list[tuple[float, ...]] = []
        content = dumps({"model": self._model, "input": list(texts), **self._extra})

        async def attempt() -> Completion:
            client, started = await self._open(), time.monotonic()
            async with self._request(client, content, "embeddings") as response:
                answer = await self._in_time(response.aread())
            vectors[:], usage, reported = embeddings_of(answer, len(texts), self._server)
            cost, source = self._price(usage, reported)
            latency = time.monotonic() - started
            return Completion("", usage=usage, cost=cost, cost_source=source, model=self._model, latency=latency)

        completion = await with_retries(self._patience, attempt)
        return Embeddings(tuple(vectors), completion)

    def _adapt(self, error: LLMError, body: dict[str, Any], known: Container[str]) -> bool:
        """Return whether the next request, with this body, differs in what the server refuses.

        ``known`` are the rules of the refused request; a parallel call may have added others since.
        """
        if isinstance(error, TemplateError) and error.rule not in known:
            self._normaliser.rules.add(error.rule)
            return True
        if isinstance(error, RequestRejectedError) and "temperature" in str(error) and "temperature" in body:
            # Reasoning models take no other temperature than their own.
            self._takes_temperature = False
            del body["temperature"]
            return True
        if isinstance(error, RequestRejectedError) and "stream_options" in str(error) and "stream_options" in body:
            # Some gateways do not know the field; the tokens of their answers may then be unknown.
            self._takes_stream_options = False
            del body["stream_options"]
            return True
        for rule, pattern in _WIRE_RULES if isinstance(error, RequestRejectedError) else ():
            if rule not in known and pattern.search(str(error)):
                self._wire.obey(rule)
                return True
        return False

    def _learn(self, error: LLMError, *, tools: bool, form: ReplyForm | None, images: bool) -> None:
        """Raise UnsupportedError, and remember it, if the error shows that the server lacks a capability."""
        fewer = lacking(error, self._capabilities, tools=tools, form=form, images=images)
        if fewer is not None:
            remember(self._endpoint.base_url, self._model, self._capabilities, fewer)
            self._capabilities = fewer
            raise UnsupportedError(str(error)) from error

    async def _open(self) -> AsyncClient:
        async with self._opening:
            # Imported late: merely creating a model must stay cheap.
            import httpx2

            from handiwork.llm.bounded_client import BoundedClient

            if self._client is None or self._lost:
                address: ServerAddress = await self._connect()
                if self._client is None or address != self._endpoint:
                    await self.close()
                    self._endpoint = address
                    self._client = BoundedClient(
                        base_url=address.base_url,
                        headers={"Authorization": f"Bearer {address.api_key}", "User-Agent": "handiwork"},
                        timeout=None,
                    )
                self._lost = False
            if not self._probed:
                try:
                    self._capabilities = await probe(self._client, self._model, self._capabilities)
                except httpx2.HTTPError as error:
                    raise self._unreachable(error) from error
                self._capabilities = recall(self._endpoint.base_url, self._model, self._capabilities)
                self._probed = True
            return self._client

    async def _attempt(self, client: AsyncClient, content: str, on_delta: OnDelta | None) -> Completion:
        from handiwork.llm.bounded_client import lines_of

        started = time.monotonic()
        answer = Assembly(on_delta, finds_repetition=self._cuts_repetition)
        try:
            async with self._request(client, content, "chat/completions") as response:
                lines = lines_of(response)
                while (line := await self._in_time(anext(lines, None))) is not None:
                    answer.feed(line)
                    if answer.done:
                        await _drain(lines)
                    elif answer.is_endless:
                        answer.cut()
                        break
            if answer.is_endless:
                await asyncio.sleep(RELEASE)
        except StreamError as error:
            raise self._stream_failure(error) from error
        usage = answer.usage
        cost, source = self._price(usage, answer.reported_cost)
        completion = Completion(
            content=answer.content,
            tool_calls=answer.tool_calls,
            thinking=tuple({**part, "model": self._model} for part in (*answer.thinking, *answer.extras)),
            usage=usage,
            cost=cost,
            cost_source=source,
            model=answer.model or self._model,
            finish_reason=answer.finish_reason or "stop",
            latency=time.monotonic() - started,
            first_token=answer.first_token,
        )
        try:
            self._check(answer)
        except LLMError as error:
            discard(error, completion)
            raise
        return completion

    @asynccontextmanager
    async def _request(self, client: AsyncClient, content: str, path: str) -> AsyncGenerator[Response]:
        """Send the request to the endpoint ``path`` and yield its answer; always close the answer."""
        import httpx2

        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        request = client.build_request("POST", path, content=content.encode(), headers=headers)
        try:
            response = await self._in_time(client.send(request, stream=True))
            try:
                if not response.is_success:
                    body = (await self._in_time(response.aread())).decode(errors="replace")
                    retry_after = retry_after_seconds(response.headers.get("retry-after"))
                    raise refusal(response.status_code, body, self._model, self._server, self._key_name, retry_after)
                yield response
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error

    async def _in_time(self, step: Awaitable[T]) -> T:
        silence = self._patience.silence
        if silence is None:
            silence = 600.0 if _is_near(urlsplit(self._endpoint.base_url).hostname or "") else SILENCE
        try:
            async with asyncio.timeout(silence):
                return await step
        except TimeoutError:
            raise ProviderError(f"{self._server} sent nothing for {silence:g} s") from None

    def _unreachable(self, error: Exception) -> ProviderError:
        self._lost = True
        detail = f"{type(error).__name__} {error}".strip()
        return ProviderError(f"the connection to {self._server} failed: {detail}")

    def _stream_failure(self, error: StreamError) -> LLMError:
        words: Any = error.body["error"]
        code = cast("dict[str, Any]", words).get("code") if isinstance(words, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else None
        return refusal(status, error.body, self._model, self._server, self._key_name)

    def _price(self, usage: Usage, reported: float | None) -> tuple[float | None, CostSource]:
        if self._free:
            return 0.0, "local"
        return price(usage, self._model, self._endpoint.base_url, reported)

    def _check(self, answer: Assembly) -> None:
        if not answer.done and not answer.finish_reason:
            raise ProviderError(f"the stream from {self._server} was cut before its end")
        if answer.finish_reason in _BROKEN_OFF:
            raise ProviderError(f"{self._server} broke its answer off: {answer.finish_reason}")
        if answer.content or answer.tool_calls:
            return
        if answer.finish_reason == "content_filter":
            raise RequestRejectedError(f"{self._server} filtered the whole answer")
        if answer.finish_reason == "length":
            raise OutputLimitError(f"{self._model} used up its output limit before it answered")
        raise EmptyAnswerError(f"{self._server} sent an empty answer")

    @property
    def _server(self) -> str:
        return self._endpoint.base_url or self._name

    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _is_near(host: str) -> bool:
    """Return whether a host is this machine or one of a local network, which may load a model first."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".internal"))


async def _drain(lines: AsyncIterator[str]) -> None:
    """Read the rest after [DONE], so that the connection can be reused; the server has one second to end the answer."""
    import httpx2

    with suppress(TimeoutError, httpx2.HTTPError, LLMError):
        async with asyncio.timeout(1.0):
            async for _ in lines:
                pass
