"""The models of a provider or a server: its own list, else the list of prices that this package ships."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

import httpx2

from handiwork.llm.bounded_client import BoundedClient
from handiwork.llm.catalog.requests import LISTS, SECONDS, key_header, refuses_key
from handiwork.llm.errors import LLMError
from handiwork.llm.strict_json import parse
from handiwork.providers import KEYS

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, Provider


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model; ``input`` and ``output`` are USD for a million tokens, None if unknown."""

    name: str
    title: str = ""
    window: int | None = None
    input: float | None = None
    output: float | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """Models by name. ``source`` tells whose list it is; ``problem`` says why it is not the provider's."""

    source: Literal["provider", "shipped"]
    models: tuple[ListedModel, ...]
    problem: str = ""
    refused: bool = False
    """Whether the provider refuses the key, or asks for one."""


async def models_of(provider: str, address: str | None = None, key: str | None = None) -> Listing:
    """Return the models of one of the providers of KEYS, or of a server whose list is at ``address``.

    ``key`` is by default that of the environment. Without a key, or if the provider does not answer, the models are
    those of the shipped list that have a price for output.
    """
    names = KEYS.get(provider, ("HANDIWORK_API_KEY",))
    key = key or next((value for name in names if (value := os.environ.get(name))), None)
    if key is None and address is None:
        return _shipped(provider, f"no key: set {KEYS[provider][0]}")
    try:
        async with asyncio.timeout(SECONDS), BoundedClient(timeout=None) as client:
            answer = await client.get(address or LISTS[provider], headers=key_header(provider, key or "none"))
        if refuses_key(answer):
            problem = "the key is refused: enter another one" if key else "the server asks for a key"
            return replace(_shipped(provider, problem), refused=True)
        if not answer.is_success:
            return _shipped(provider, f"its list answers with {answer.status_code}")
        titles = dict(_names(parse(answer.text)))
    except (httpx2.HTTPError, httpx2.InvalidURL, LLMError, TimeoutError, ValueError) as error:
        return _shipped(provider, f"its list cannot be read: {str(error) or type(error).__name__}")
    prices = _prices(provider)
    models = [
        _priced(prices.find_model(name) if prices is not None else None, ListedModel(name, title))
        for name, title in titles.items()
    ]
    return Listing("provider", tuple(sorted(models, key=lambda model: model.name)))


def _names(answer: Any) -> Iterable[tuple[str, str]]:
    """Yield the name and the title of each model in a provider's answer. Raises ValueError for another form."""
    entries = answer
    if isinstance(answer, dict):
        fields = cast("dict[str, Any]", answer)
        entries = fields.get("data", fields.get("models"))
    if not isinstance(entries, list):
        raise ValueError("it is no list of models")
    for entry in cast("list[Any]", entries):
        if not isinstance(entry, dict):
            continue
        fields = cast("dict[str, Any]", entry)
        name = fields.get("id") or fields.get("name")
        if isinstance(name, str) and name:
            title = fields.get("display_name") or fields.get("displayName") or ""
            yield name.removeprefix("models/"), title if isinstance(title, str) else ""


def _shipped(provider: str, problem: str) -> Listing:
    prices = _prices(provider)
    if prices is None:
        return Listing("shipped", (), problem)
    models = [_priced(info, ListedModel(info.id)) for info in prices.models if not info.deprecated]
    return Listing("shipped", tuple(model for model in models if model.output), problem)


def _prices(provider: str) -> Provider | None:
    # Imported late: the price list takes a third of a second to load.
    from genai_prices.data_snapshot import get_snapshot

    return next((entry for entry in get_snapshot().providers if entry.id == provider), None)


def _priced(info: ModelInfo | None, model: ListedModel) -> ListedModel:
    if info is None:
        return model
    price = info.get_prices(datetime.now(UTC))
    return replace(
        model,
        title=model.title or info.name or "",
        window=info.context_window,
        input=_dollars(price.input_mtok),
        output=_dollars(price.output_mtok),
    )


def _dollars(price: Any) -> float | None:
    """Return a price; one that depends on the length of the prompt is that of a short one."""
    return None if price is None else float(getattr(price, "base", price))
