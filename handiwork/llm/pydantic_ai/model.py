"""Models of providers with their own protocols, through pydantic-ai."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

import httpx2
from pydantic_ai import exceptions
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from handiwork.llm.bounded_client import LAST_BYTE, BoundedClient, LastByte, cause_of
from handiwork.llm.catalog.keys import place_of, variable_of
from handiwork.llm.create import FORMS
from handiwork.llm.errors import (
    AnswerTooLargeError,
    AuthenticationError,
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
from handiwork.llm.openai_compatible.model import ChatLLM, ServerAddress
from handiwork.llm.openai_compatible.wire import Blobs, has_images, require_senses
from handiwork.llm.price import price
from handiwork.llm.pydantic_ai.parts import MessageParts, calls_of, thinking_of
from handiwork.llm.retry import SILENCE, Patience, discard, with_retries
from handiwork.llm.types import LLM, Capabilities, Completion, Grammar, Message, OnDelta, ReplyForm, Tool
from handiwork.llm.usage import usage_of
from handiwork.llm.window import window_of

if TYPE_CHECKING:
    from pydantic_ai.models.openai import OpenAIChatModel

T = TypeVar("T")

LONGEST_CALL = 1800.0
"""Seconds without a byte after which a client ends a call that no other limit has ended."""

LONGEST_ANSWER = 4_000_000
"""The most characters of one answer, including its reasoning and the arguments of its calls."""

_EMPTY_PART = 500
_DELTAS = ("content_delta", "args_delta", "signature_delta", "tool_name_delta")

Build = Callable[[], tuple[Model, BoundedClient]]
"""Creates a model, and the client for its requests."""


def provider_model(
    name: str, base_url: str | None, api_key: str | None, blobs: Blobs, patience: Patience | None
) -> LLM:
    """Return the model ``name``, "PROVIDER:MODEL" in pydantic-ai's terms.

    If the provider uses OpenAI's chat completions, and a key as OpenAI does, the result is a ChatLLM. Raises
    AuthenticationError if the key is missing and LLMError for an unknown provider.
    """

    def build() -> tuple[Model, BoundedClient]:
        client = BoundedClient(timeout=LONGEST_CALL)
        if base_url:
            return _with_base_url(name, base_url, api_key, client), client
        return _infer(name, api_key, client), client

    try:
        model, _ = build()
    except (exceptions.UserError, ImportError) as error:
        words = str(error).split(" or pass it")[0].split(" To try ")[0]
        if "environment variable" in words:
            raise AuthenticationError(f"{name} needs a key or address: {words}") from error
        raise LLMError(f"cannot use {name}: {words}") from error
    key_name = place_of("HANDIWORK_API_KEY" if base_url else variable_of(name))
    if not _is_openai(model):
        return ProviderLLM(name, build, key_name, blobs=blobs, patience=patience)
    address = ServerAddress(str(model.client.base_url), model.client.api_key)

    async def endpoint() -> ServerAddress:
        return address

    return ChatLLM(name, model.model_name, endpoint, blobs=blobs, patience=patience, key_name=key_name)


def _is_openai(model: Model) -> TypeGuard[OpenAIChatModel]:
    # The module is there if the model is one of its own; importing it for others would take half a second.
    module = sys.modules.get("pydantic_ai.models.openai")
    if module is None or not isinstance(model, module.OpenAIChatModel):
        return False
    from openai import AsyncAzureOpenAI

    # Only its own client knows the addresses of deployments, their version and the header of their key.
    return not isinstance(cast("OpenAIChatModel", model).client, AsyncAzureOpenAI)


def _infer(name: str, api_key: str | None, client: httpx2.AsyncClient) -> Model:
    """Return pydantic-ai's model for a name. Raises UserError, ImportError."""

    def provider(kind: str) -> Provider[Any]:
        options: dict[str, Any] = {} if api_key is None else {"api_key": api_key}
        if kind.startswith("gateway/"):
            from pydantic_ai.providers import gateway

            upstream = kind.removeprefix("gateway/")
            return cast("Any", gateway).gateway_provider(upstream, http_client=client, **options)
        try:
            build = cast("type[Any]", infer_provider_class(kind))
        except ValueError:
            raise LLMError(f'"{kind}" is no provider: write the model {FORMS}, or give --base-url') from None
        if "http_client" in signature(build).parameters:
            options["http_client"] = client
        return build(**options)

    return infer_model(name, provider)


def _with_base_url(name: str, base_url: str, api_key: str | None, client: httpx2.AsyncClient) -> Model:
    kind, _, model = name.partition(":")
    options: dict[str, Any] = {"api_key": api_key or "none", "base_url": base_url, "http_client": client}
    if kind == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(model, provider=AnthropicProvider(**options))
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(model, provider=GoogleProvider(**options))


class ProviderLLM:
    """A model accessed through pydantic-ai; after a failed attempt the deltas restart from the beginning.

    ``key_name`` is the variable or the file that holds the key.
    """

    def __init__(
        self, name: str, build: Build, key_name: str, *, blobs: Blobs, patience: Patience | None = None
    ) -> None:
        self._name = name
        self._key_name = key_name
        self._build = build
        self._model, self._client = build()
        self._patience = patience or Patience()
        self._normaliser = Normaliser()
        self._parts = MessageParts(blobs, self._model.system)
        self._entered = False
        profile = self._model.profile
        self._capabilities = Capabilities(
            tools=profile.get("supports_tools", True),
            schema=profile.get("supports_json_schema_output", False),
            vision=profile.get("supports_image_input", True),
            hearing=profile.get("supports_audio_file_input", True),
            window=profile.get("context_window"),
        )

    @property
    def name(self) -> str:
        """The model string it was created from."""
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        """The model's capabilities; a window that no list has is known after ``open``."""
        return self._capabilities

    async def open(self) -> None:
        """Ask the provider for the window if no list has it."""
        if not self._entered:
            self._entered = True
            if self._client.is_closed:
                self._model, self._client = self._build()
            await self._model.__aenter__()
            if self._capabilities.window is None:
                self._capabilities = replace(self._capabilities, window=await window_of(self._model))

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        form: ReplyForm | None = None,
        on_delta: OnDelta | None = None,
        temperature: float | None = None,
    ) -> Completion:
        """Return the model's answer, with the retries of Patience; see LLM.complete."""
        require_senses(messages, self._capabilities, self._name)
        await self.open()
        parameters = _parameters(tools, form)

        async def attempt() -> Completion:
            known = set(self._normaliser.rules)
            forms = self._parts.forms(self._normaliser.normalise(messages))
            try:
                return await self._attempt(forms, self._settings(temperature), parameters, on_delta)
            except LLMError as error:
                if isinstance(error, TemplateError) and error.rule not in known:
                    self._normaliser.rules.add(error.rule)
                    raise ProviderError(str(error), retry_after=0.0) from error
                images = has_images(messages)
                fewer = lacking(error, self._capabilities, tools=bool(tools), form=form, images=images)
                if fewer is None:
                    raise
                self._capabilities = fewer
                raise UnsupportedError(str(error)) from error

        return await with_retries(self._patience, attempt)

    async def _attempt(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
        on_delta: OnDelta | None,
    ) -> Completion:
        started = time.monotonic()
        first_token: float | None = None
        size = 0
        LAST_BYTE.set(last := LastByte(started))
        request = self._model.request_stream(messages, settings, parameters)
        stream = await self._in_time(request.__aenter__(), last)
        try:
            events = aiter(stream)
            while (event := await self._in_time(anext(events, None), last)) is not None:
                first_token = first_token or time.monotonic() - started
                size += _size(event)
                if size > LONGEST_ANSWER:
                    raise AnswerTooLargeError(
                        f"{self._name} sent an answer of more than {LONGEST_ANSWER // 10**6} million characters, "
                        "so it was dropped"
                    )
                text = ""
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    text = event.part.content
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    text = event.delta.content_delta
                if text and on_delta is not None:
                    on_delta(text)
            with self._answer():
                response = stream.get()
        except (ProviderError, asyncio.CancelledError) as error:
            # The tokens of the prompt are paid for, and some providers tell them at the beginning.
            with suppress(Exception):
                discard(error, self._completion(stream.get(), time.monotonic() - started, first_token))
            raise
        finally:
            with self._answer():
                await request.__aexit__(None, None, None)
        with self._answer():
            completion = self._completion(response, time.monotonic() - started, first_token)
            self._check(response, completion)
            return completion

    def _completion(self, response: ModelResponse, latency: float, first_token: float | None) -> Completion:
        counted = response.usage
        # pydantic-ai includes cached tokens in the input, for every provider.
        usage = usage_of(
            counted.input_tokens, counted.output_tokens, counted.cache_read_tokens, counted.cache_write_tokens
        )
        cost, source = price(usage, response.model_name or self._model.model_name, self._base_url)
        return Completion(
            content=response.text or "",
            tool_calls=calls_of(response.parts),
            thinking=thinking_of(response.parts),
            usage=usage,
            cost=cost,
            cost_source=source,
            model=response.model_name or self._model.model_name,
            finish_reason=response.finish_reason or "",
            latency=latency,
            first_token=first_token,
        )

    def _check(self, response: ModelResponse, completion: Completion) -> None:
        error: LLMError
        if response.finish_reason is None or response.state != "complete":
            error = ProviderError(f"the stream from {self._name} was cut before its end")
        elif response.finish_reason == "error":
            error = ProviderError(f"{self._name} broke its answer off")
        elif completion.content or completion.tool_calls:
            return
        elif response.finish_reason == "length":
            error = OutputLimitError(f"{self._name} used up its output limit before it answered")
        elif response.finish_reason == "content_filter":
            error = RequestRejectedError(f"{self._name} ended without an answer: {response.finish_reason}")
        else:
            error = EmptyAnswerError(f"{self._name} sent an empty answer")
        discard(error, completion)
        raise error

    def _settings(self, temperature: float | None) -> ModelSettings:
        settings: dict[str, Any] = {"max_retries": 0, "timeout": self._patience.deadline}
        if temperature is not None:
            settings["temperature"] = temperature
        if self._model.system == "anthropic":
            settings |= {"anthropic_cache": True, "anthropic_cache_instructions": True}
        elif self._model.system == "bedrock":  # its models, too, cache a prompt only on request
            settings |= {f"bedrock_cache_{part}": True for part in ("instructions", "tool_definitions", "messages")}
        return cast("ModelSettings", settings)

    @contextmanager
    def _answer(self) -> Generator[None]:
        """Convert all exceptions to LLMError: each SDK has its own for an answer it cannot read."""
        try:
            yield
        except LLMError:
            raise
        except Exception as error:
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> LLMError:
        if (cause := cause_of(error)) is not None:
            return cause
        if isinstance(error, exceptions.ModelAPIError):
            status = error.status_code if isinstance(error, exceptions.ModelHTTPError) else None
            body = error.body or str(error)
            return refusal(status, body, self._model.model_name, self._name, self._key_name, error.retry_after)
        return ProviderError(f"{self._name} failed: {type(error).__name__} {str(error)[:500]}")

    async def _in_time(self, step: Awaitable[T], last: LastByte) -> T:
        """Return the step's result; bytes count as a sign of life, as a server may send no event for a long time."""

        async def result() -> T:
            with self._answer():
                return await step

        silence = self._patience.silence or SILENCE
        last.time = time.monotonic()
        task = asyncio.create_task(result())
        try:
            while not task.done():
                left = last.time + silence - time.monotonic()
                if left <= 0:
                    raise ProviderError(f"{self._name} sent nothing for {silence:g} s")
                await asyncio.wait({task}, timeout=left)
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    @property
    def _base_url(self) -> str:
        return self._model.base_url or ""

    async def close(self) -> None:
        """Close the connections."""
        if self._entered:
            self._entered = False
            await self._model.__aexit__(None, None, None)
            await self._client.aclose()


def _size(event: ModelResponseStreamEvent) -> int:
    """Return the number of characters an event adds to the answer; even an empty new part counts as some."""
    if isinstance(event, PartStartEvent):
        return _EMPTY_PART + len(str(event.part))
    if not isinstance(event, PartDeltaEvent):
        return 0
    return sum(len(str(getattr(event.delta, field, None) or "")) for field in _DELTAS)


def _parameters(tools: Sequence[Tool], form: ReplyForm | None) -> ModelRequestParameters:
    definitions = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
        for tool in tools
    ]
    if form is None or isinstance(form, Grammar):
        return ModelRequestParameters(function_tools=definitions)
    output = OutputObjectDefinition(json_schema=form, name="reply", strict=True)
    return ModelRequestParameters(function_tools=definitions, output_mode="native", output_object=output)
