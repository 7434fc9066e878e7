"""Asks a server for its model's context window, and whether it accepts images."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from handiwork.llm.errors import LLMError
from handiwork.llm.strict_json import parse
from handiwork.llm.types import Capabilities
from handiwork.llm.usage import MOST_TOKENS, object_of

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from pydantic_ai.models import Model

_PATIENCE = 5.0
_WINDOW_KEYS = (
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
)


async def probe(client: AsyncClient, model: str, capabilities: Capabilities) -> Capabilities:
    """Return the ``capabilities`` updated by the server's answers: llama.cpp, Ollama, LM Studio, vLLM, OpenRouter.

    Missing values stay as they were. Takes at most 5 s. Raises httpx2.HTTPError if nothing listens at the address.
    """
    root = str(client.base_url).rstrip("/").removesuffix("/v1")
    listed, props, loaded, studio = await asyncio.gather(
        _get(client, "/models"),
        _get(client, f"{root}/props"),
        _get(client, f"{root}/api/ps"),
        _get(client, f"{root}/api/v0/models"),
    )
    updated = _from_list(studio, model, _from_list(listed, model, capabilities))
    updated = _from_ollama(loaded, model, _from_llama_cpp(props, updated))
    return (
        updated if updated.window is not None else replace(updated, window=_listed_window(model, str(client.base_url)))
    )


async def window_of(model: Model) -> int | None:
    """Return the context window that Anthropic or Google reports for its model, None if it does not within 5 s."""
    client = cast("Any", getattr(model, "client", None))
    try:
        async with asyncio.timeout(_PATIENCE):
            if model.system == "anthropic":
                window: object = (await client.models.retrieve(model.model_name)).max_input_tokens
            else:
                window = (await client.aio.models.get(model=model.model_name)).input_token_limit
    except Exception:  # noqa: BLE001 - each SDK has its own errors, and the call itself raises the relevant ones
        return None
    return _tokens(window)


async def _get(client: AsyncClient, path: str) -> dict[str, Any]:
    import httpx2

    try:
        async with asyncio.timeout(_PATIENCE):
            answer: object = parse((await client.get(path)).raise_for_status().text)
    except (httpx2.HTTPStatusError, TimeoutError, ValueError, LLMError):
        return {}
    return object_of(answer)


def _from_list(answer: Mapping[str, Any], model: str, capabilities: Capabilities) -> Capabilities:
    for entry in _objects(answer.get("data")):
        if entry.get("id") != model:
            continue
        if entry.get("state") == "not-loaded":
            break  # LM Studio may load it with a smaller window than the model's maximum
        windows = (_tokens(entry.get(key)) for key in _WINDOW_KEYS)
        window = next((window for window in windows if window is not None), capabilities.window)
        inputs = object_of(entry.get("architecture")).get("input_modalities")
        if isinstance(inputs, list):
            capabilities = replace(capabilities, vision="image" in inputs, hearing="audio" in inputs)
        return replace(capabilities, window=window)
    return capabilities


def _from_llama_cpp(answer: Mapping[str, Any], capabilities: Capabilities) -> Capabilities:
    window = _tokens(object_of(answer.get("default_generation_settings")).get("n_ctx"))
    if window is None:
        return capabilities
    template = answer.get("chat_template")
    tools = capabilities.tools and (not isinstance(template, str) or "tools" in template)
    senses = object_of(answer.get("modalities"))
    vision, hearing = bool(senses.get("vision")), bool(senses.get("audio"))
    return replace(capabilities, window=window, vision=vision, hearing=hearing, tools=tools, grammar=True)


def _from_ollama(answer: Mapping[str, Any], model: str, capabilities: Capabilities) -> Capabilities:
    for entry in _objects(answer.get("models")):
        window = _tokens(entry.get("context_length"))
        names = {str(entry.get("name")), str(entry.get("model"))}
        if names & {model, f"{model}:latest"} and window is not None:
            return replace(capabilities, window=window)
    return capabilities


def _listed_window(model: str, base_url: str) -> int | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, info = get_snapshot().find_provider_model(model, None, None, base_url)
    except LookupError:
        return None
    return info.context_window


def _tokens(value: object) -> int | None:
    """Return a window reported by a server, None if it is invalid."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_TOKENS else None


def _objects(value: object) -> list[dict[str, Any]]:
    return [object_of(entry) for entry in cast("list[object]", value)] if isinstance(value, list) else []
