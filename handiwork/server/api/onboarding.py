"""Operations for a new user: try a model, set it as the default, and make a demo task."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Annotated, Literal

from pydantic import Field

from handiwork.llm import create as llms
from handiwork.llm.availability import KEYS
from handiwork.llm.retry import Patience
from handiwork.llm.types import Message
from handiwork.server.api import demo
from handiwork.server.api.catalog import show_settings
from handiwork.server.operations import Operation, OperationCall, RequestRefusedError
from handiwork.server.schemas.sessions import Line, SettingsView, Shape
from handiwork.settings import model_name, set_defaults

_SECONDS = 300.0
"""Seconds to wait for the answer of a model: a local one may have to be downloaded first."""


class ModelChoice(Shape):
    """A model; ``base_url`` is that of an OpenAI-compatible server."""

    model: Annotated[Line, Field(min_length=1)]
    base_url: Line | None = None


class ModelKey(Shape):
    """A provider's key; ``provider`` null means the server of a base URL."""

    provider: Line | None = None
    key: Annotated[Line, Field(min_length=1, description="never written to a file")]


class KeyTaken(Shape):
    """The server uses the key until it ends; later servers read the environment variable ``variable``."""

    variable: str


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


async def take_key(call: OperationCall[None, ModelKey]) -> KeyTaken:
    """Use a provider's key until the server ends."""
    provider = call.body.provider
    if provider is not None and provider not in KEYS:
        raise RequestRefusedError(422, f"provider: unknown provider {provider!r}; known: {', '.join(KEYS)}")
    variable = KEYS[provider][0] if provider is not None else "HANDIWORK_API_KEY"
    key = call.body.key.strip()
    if not key or not key.isascii() or not key.isprintable():
        raise RequestRefusedError(422, "key: it is empty or has characters that no key has")
    os.environ[variable] = key
    return KeyTaken(variable=variable)


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
    Operation("POST", "/api/models/key", take_key, KeyTaken, body=ModelKey, refuses=()),
    Operation("PATCH", "/api/settings", choose_model, SettingsView, body=ModelChoice, refuses=(503,)),
    Operation("POST", "/api/demo", make_demo, Demo, status=201, refuses=(503,)),
)
