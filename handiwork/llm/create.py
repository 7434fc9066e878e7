"""Creates models from their names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from handiwork.llm.catalog.keys import load_keys, place_of
from handiwork.llm.errors import LLMError
from handiwork.llm.openai_compatible.wire import Blobs, no_blobs
from handiwork.llm.retry import Patience
from handiwork.llm.types import LLM

_CHAT_PREFIXES = ("openai:", "openai-chat:", "openrouter:", "ollama:", "vllm:", "litellm:")
FORMS = 'like "anthropic:NAME", "openai:NAME", "google:NAME", "openrouter:NAME", "local:NAME" or "scripted:FILE"'


def create(
    model: str,
    base_url: str | None = None,
    api_key: str | None = None,
    blobs: Blobs = no_blobs,
    patience: Patience | None = None,
    status: Callable[[str], None] | None = None,
) -> LLM:
    """Return the model of a model string; no request is sent before its first completion.

    "scripted:FILE" answers from a file, "local:NAME" runs on this machine, "PROVIDER:NAME" is a provider's model, with
    the key from its own environment variable or kept. With ``base_url`` any other name is a model of that
    OpenAI-compatible server ("anthropic:NAME" and "google:NAME" use their own protocol with it), and the key is
    ``api_key``, else HANDIWORK_API_KEY, else none. ``blobs`` reads the images of messages, ``status`` is called when a
    local model takes time. Raises AuthenticationError if a key is missing and LLMError for an unknown name.
    """
    if model.startswith("scripted:"):
        from handiwork.llm.scripted.model import ScriptedLLM
        from handiwork.llm.scripted.script import read_script

        return ScriptedLLM(read_script(Path(model.removeprefix("scripted:"))), model)
    if model.startswith("local:"):
        from handiwork.llm.local.model import LocalLLM

        return LocalLLM(model.removeprefix("local:"), status)
    load_keys()
    if base_url is not None:
        _check_address(base_url)
        api_key = api_key or os.environ.get("HANDIWORK_API_KEY") or "none"
        if not model.startswith(("anthropic:", "google:")):
            return _server_model(model, base_url, api_key, blobs, patience)
    elif api_key is None:
        _require_key(model)
    if ":" not in model:
        raise LLMError(f'"{model}" names no provider: write it {FORMS}, or give --base-url')
    from handiwork.llm.pydantic_ai.model import provider_model

    return provider_model(model, base_url, api_key, blobs, patience)


def _require_key(model: str) -> None:
    """Raise AuthenticationError for a known provider without a key; importing its library first would take seconds."""
    from handiwork.llm.availability import KEYS, provider_keys
    from handiwork.llm.errors import AuthenticationError

    provider = model.partition(":")[0]
    if provider in KEYS and provider_keys()[provider] is None and not os.environ.get(f"{provider.upper()}_BASE_URL"):
        raise AuthenticationError(
            f"{model} needs a key or address: Set the `{KEYS[provider][0]}` environment variable."
        )


def _check_address(base_url: str) -> None:
    """Raise LLMError for a base URL to which no request can be sent."""
    if not base_url.startswith(("http://", "https://")):
        raise LLMError(f'the base URL "{base_url}" must begin with http:// or https://')
    try:
        address = urlsplit(base_url)
        problem = "" if address.hostname and address.port != 0 else "it has no host or no port"
    except ValueError as error:
        problem = str(error)
    if problem:
        raise LLMError(f'the base URL "{base_url}" is invalid: {problem}')


def _server_model(model: str, base_url: str, api_key: str, blobs: Blobs, patience: Patience | None) -> LLM:
    from handiwork.llm.openai_compatible.model import ChatLLM, ServerAddress

    async def endpoint() -> ServerAddress:
        return ServerAddress(base_url, api_key)

    prefix = next((prefix for prefix in _CHAT_PREFIXES if model.startswith(prefix)), "")
    key_name = place_of("HANDIWORK_API_KEY")
    return ChatLLM(model, model.removeprefix(prefix), endpoint, blobs=blobs, patience=patience, key_name=key_name)
