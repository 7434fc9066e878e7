"""Responses about models, agents and the default settings."""

from __future__ import annotations

from pydantic import JsonValue

from handiwork.events.record import Confirmation, Limits
from handiwork.server.schemas.sessions import Shape


class ModelInfo(Shape):
    """A model, or a provider's models (``NAME`` stands for theirs); ``ready`` means it can be used now."""

    name: str
    ready: bool
    about: str


class ModelList(Shape):
    """The available models; ``default`` is the one in the settings."""

    default: str
    models: list[ModelInfo]


class AgentInfo(Shape):
    """An installed agent; ``inputs`` and ``outputs`` of a delegation to it are JSON Schemas."""

    name: str
    about: str
    package: str
    inputs: dict[str, JsonValue]
    outputs: dict[str, JsonValue]


class AgentList(Shape):
    """The installed agents; ``default`` is the one in the settings."""

    default: str
    agents: list[AgentInfo]


class SettingsView(Shape):
    """The default settings of new sessions. Secrets are named, never shown."""

    file: str
    version: str
    model: str
    base_url: str | None
    agent: str
    sandbox: str
    image: str | None
    allow_net: list[str]
    confirmation: Confirmation
    plan_mode: bool
    limits: Limits
    secrets: list[str]
