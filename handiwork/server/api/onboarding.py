"""Operations for a new user: download and try a model, set it as the default, and make a demo task."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Annotated, Literal

from pydantic import Field

from handiwork.llm import create as llms
from handiwork.llm.availability import KEYS
from handiwork.llm.catalog.keys import keep_key, keys_file, load_keys
from handiwork.llm.catalog.listing import models_of
from handiwork.llm.local.weights import KNOWN
from handiwork.llm.retry import Patience
from handiwork.llm.types import Message
from handiwork.server.api import demo
from handiwork.server.api.catalog import show_settings
from handiwork.server.operations import Operation, OperationCall, RequestRefusedError
from handiwork.server.schemas.catalog import SettingsView
from handiwork.server.schemas.sessions import Line, Shape
from handiwork.settings import model_name, set_defaults

_SECONDS = 300.0
"""Seconds to wait for the answer of a model: a local one may have to be loaded first."""


class ModelChoice(Shape):
    """A model; ``base_url`` is that of an OpenAI-compatible server."""

    model: Annotated[Line, Field(min_length=1)]
    base_url: Line | None = None


class ModelKey(Shape):
    """A provider's key; ``provider`` null means the server of a base URL.

    With ``keep`` it is also written to a file that only the user can read, for later servers and the command line.
    """

    provider: Line | None = None
    key: Annotated[Line, Field(min_length=1)]
    keep: bool = False


class KeyTaken(Shape):
    """The server uses the key as the environment variable ``variable``; ``file`` is the file that keeps it, if any."""

    variable: str
    file: str | None


class OfferQuery(Shape):
    """A provider, or null for the server at ``base_url``."""

    provider: Line | None = None
    base_url: Line | None = None


class OfferedModel(Shape):
    """A model by the name that a session takes; ``input`` and ``output`` are USD for a million tokens."""

    name: str
    title: str
    window: int | None
    input: float | None
    output: float | None


class OfferedModels(Shape):
    """The models of a provider or a server; ``source`` "shipped" is the list that comes with Handiwork."""

    source: Literal["provider", "shipped"]
    problem: str
    models: list[OfferedModel]


class LocalModel(Shape):
    """A local model by the name that ``GET /api/models`` gives it."""

    model: Annotated[Line, Field(min_length=1)]


class ModelDownload(Shape):
    """The download of a local model, in bytes; ``done`` means that the model can be used."""

    fetched: int
    size: int
    done: bool


class ModelAnswer(Shape):
    """The model answered, after ``seconds``."""

    ok: Literal[True] = True
    reply: str
    seconds: float


class Demo(Shape):
    """A folder with a bug in it and the task to repair it."""

    workspace: str
    task: str


async def try_model(call: OperationCall[None, ModelChoice]) -> ModelAnswer:
    """Send a model a short prompt, and return its answer or the error."""
    model = llms.create(model_name(call.body.model), call.body.base_url, patience=Patience(attempts=1))
    began = time.monotonic()
    try:
        async with asyncio.timeout(_SECONDS):
            answer = await model.complete([Message.text("user", "Say hello in one short sentence.")])
    except TimeoutError:
        raise RequestRefusedError(422, f"{call.body.model} did not answer within {_SECONDS:.0f} seconds") from None
    finally:
        await model.close()
    return ModelAnswer(reply=answer.content[:500], seconds=time.monotonic() - began)


async def fetch_model(call: OperationCall[None, LocalModel]) -> ModelDownload:
    """Download a local model: the first call begins, and every call returns at once how far it is, or why it failed."""
    name = call.body.model.removeprefix("local:")
    if name not in KNOWN:
        known = ", ".join(f"local:{one}" for one in KNOWN)
        raise RequestRefusedError(422, f"model: {call.body.model!r} is no model to download; known: {known}")
    state = call.supervisor.downloads.advance(name)
    return ModelDownload(fetched=state.fetched, size=state.size, done=state.done)


async def take_key(call: OperationCall[None, ModelKey]) -> KeyTaken:
    """Use a provider's key until the server ends, or keep it; a key that the provider refuses is an error."""
    provider = call.body.provider
    if provider is not None and provider not in KEYS:
        raise RequestRefusedError(422, f"provider: unknown provider {provider!r}; known: {', '.join(KEYS)}")
    variable = KEYS[provider][0] if provider is not None else "HANDIWORK_API_KEY"
    key = call.body.key.strip()
    if not key or not key.isascii() or not key.isprintable():
        raise RequestRefusedError(422, "key: it is empty or has characters that no key has")
    if provider is not None and (await models_of(provider, key=key)).refused:
        raise RequestRefusedError(422, f"{provider} refuses the key: copy it again, or make a new one")
    if call.body.keep:
        await asyncio.to_thread(keep_key, variable, key)
    os.environ[variable] = key
    return KeyTaken(variable=variable, file=str(keys_file()) if call.body.keep else None)


async def list_offered(call: OperationCall[OfferQuery, None]) -> OfferedModels:
    """List the models of a provider or a server with their prices."""
    provider, base_url = call.query.provider, call.query.base_url
    if (provider is None) == (base_url is None):
        raise RequestRefusedError(422, "give either a provider or a base_url")
    if provider is not None and provider not in KEYS:
        raise RequestRefusedError(422, f"provider: unknown provider {provider!r}; known: {', '.join(KEYS)}")
    if base_url is not None and not base_url.startswith(("http://", "https://")):
        raise RequestRefusedError(422, "base_url: it must begin with http:// or https://")
    await asyncio.to_thread(load_keys)
    address = None if base_url is None else f"{base_url.rstrip('/')}/models"
    listing = await models_of(provider or "", address)
    prefix = "" if provider is None else f"{provider}:"
    models = [
        OfferedModel(name=f"{prefix}{m.name}", title=m.title, window=m.window, input=m.input, output=m.output)
        for m in listing.models
    ]
    return OfferedModels(source=listing.source, problem=listing.problem, models=models)


async def choose_model(call: OperationCall[None, ModelChoice]) -> SettingsView:
    """Write a model into the user's settings as the default for new sessions."""
    model = model_name(call.body.model)
    await llms.create(model, call.body.base_url).close()
    await asyncio.to_thread(set_defaults, {"model": model, "base_url": call.body.base_url})
    return await show_settings(OperationCall(call.supervisor, call.request, None, None))


async def make_demo(call: OperationCall[None, None]) -> Demo:
    """Make a small repository with a bug."""
    folder = await asyncio.to_thread(demo.make, call.supervisor.data / "demo")
    return Demo(workspace=str(folder), task=demo.TASK)


OPERATIONS = (
    Operation("POST", "/api/models/try", try_model, ModelAnswer, body=ModelChoice, refuses=()),
    Operation("POST", "/api/models/fetch", fetch_model, ModelDownload, body=LocalModel, refuses=()),
    Operation("POST", "/api/models/key", take_key, KeyTaken, body=ModelKey, refuses=()),
    Operation("GET", "/api/models/offered", list_offered, OfferedModels, query=OfferQuery, refuses=()),
    Operation("PATCH", "/api/settings", choose_model, SettingsView, body=ModelChoice, refuses=(503,)),
    Operation("POST", "/api/demo", make_demo, Demo, status=201, refuses=(503,)),
)
