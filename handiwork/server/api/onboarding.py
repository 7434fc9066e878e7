"""Operations for a new user: download and try a model, set it as the default, and make a demo task."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Annotated, Literal

from pydantic import Field

from handiwork.llm import create as llms
from handiwork.llm.catalog.keys import keep_key, keys_file, load_keys
from handiwork.llm.catalog.listing import models_of
from handiwork.llm.catalog.requests import KeyState, check_key
from handiwork.llm.local.weights import KNOWN
from handiwork.llm.retry import Patience
from handiwork.llm.types import Message
from handiwork.providers import KEYS
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


class KeyOwner(Shape):
    """A provider, or null for the OpenAI-compatible server at ``base_url``."""

    provider: Line | None = None
    base_url: Line | None = None


class ModelKey(KeyOwner):
    """The key of a provider or a server.

    With ``keep`` it is also written to a file that only the user can read, for later servers and the command line.
    With ``untested`` it is used even if it cannot be tested.
    """

    key: Annotated[Line, Field(min_length=1)]
    keep: bool = False
    untested: bool = False


class KeyTaken(Shape):
    """The server uses the key as the environment variable ``variable``; ``file`` is the file that keeps it, if any."""

    variable: str
    file: str | None


class OfferedModel(Shape):
    """A model by the name that a session takes; ``input`` and ``output`` are USD for a million tokens."""

    name: str
    title: str
    window: int | None
    input: float | None
    output: float | None


class OfferedModels(Shape):
    """The models of a provider or a server; ``source`` "shipped" is the list that comes with Handiwork.

    ``refused`` means that the provider refuses the key, or that the server asks for one.
    """

    source: Literal["provider", "shipped"]
    problem: str
    refused: bool
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
    """Use the key of a provider or a server until this server ends, or keep it.

    A key that is refused is an error. One that cannot be tested is an error with status 502, unless ``untested`` says
    to use it all the same.
    """
    body = call.body
    address = _list_address(body)
    variable = KEYS[body.provider][0] if body.provider is not None else "HANDIWORK_API_KEY"
    key = body.key.strip()
    if not key or not key.isascii() or not key.isprintable():
        raise RequestRefusedError(422, "key: it is empty or has characters that no key has")
    state, problem = await check_key(body.provider or "", key, address)
    if state is KeyState.REFUSED:
        owner = body.provider or body.base_url
        raise RequestRefusedError(422, f"{owner} refuses the key: copy it again, or make a new one")
    if state is KeyState.UNTESTED and not body.untested:
        raise RequestRefusedError(502, f"the key could not be tested: {problem}")
    if body.keep:
        await asyncio.to_thread(keep_key, variable, key)
    os.environ[variable] = key
    return KeyTaken(variable=variable, file=str(keys_file()) if body.keep else None)


async def list_offered(call: OperationCall[KeyOwner, None]) -> OfferedModels:
    """List the models of a provider or a server with their prices."""
    address = _list_address(call.query)
    await asyncio.to_thread(load_keys)
    provider = call.query.provider
    listing = await models_of(provider or "", address)
    prefix = "" if provider is None else f"{provider}:"
    models = [
        OfferedModel(name=f"{prefix}{m.name}", title=m.title, window=m.window, input=m.input, output=m.output)
        for m in listing.models
    ]
    return OfferedModels(source=listing.source, problem=listing.problem, refused=listing.refused, models=models)


def _list_address(owner: KeyOwner) -> str | None:
    """Return the address of a server's list of models, None for a provider. Raises RequestRefusedError."""
    if (owner.provider is None) == (owner.base_url is None):
        raise RequestRefusedError(422, "give either a provider or a base_url")
    if owner.base_url is None:
        if owner.provider not in KEYS:
            raise RequestRefusedError(422, f"provider: unknown provider {owner.provider!r}; known: {', '.join(KEYS)}")
        return None
    if not owner.base_url.startswith(("http://", "https://")):
        raise RequestRefusedError(422, "base_url: it must begin with http:// or https://")
    return f"{owner.base_url.rstrip('/')}/models"


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
    Operation("POST", "/api/models/key", take_key, KeyTaken, body=ModelKey, refuses=(502,)),
    Operation("GET", "/api/models/offered", list_offered, OfferedModels, query=KeyOwner, refuses=()),
    Operation("PATCH", "/api/settings", choose_model, SettingsView, body=ModelChoice, refuses=(503,)),
    Operation("POST", "/api/demo", make_demo, Demo, status=201, refuses=(503,)),
)
