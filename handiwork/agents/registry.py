"""Find agents by name: installed agents by entry point, other agents by "module:Class" or "file.py:Class"."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

from pydantic import PydanticUserError

from handiwork.agents.base import Agent
from handiwork.agents.interface import fields_text
from handiwork.errors import HandiworkError
from handiwork.llm.types import JsonSchema

GROUP = "handiwork.agents"


class AgentNotFoundError(HandiworkError):
    """No agent has this name, or it cannot be loaded; for an unknown name the text lists the installed agents."""


def installed() -> dict[str, EntryPoint]:
    """Return the installed agents' entry points by name, without loading them."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def find(name: str) -> type[Agent]:
    """Return the agent class named ``name``. Raises AgentNotFoundError."""
    if point := installed().get(name):
        agent = point.load()
    elif ":" in name:
        agent = _load(name)
    else:
        names = ", ".join(installed()) or "none"
        raise AgentNotFoundError(
            f"there is no agent {name!r}; installed: {names}; name your own as file.py:Class or module:Class"
        )
    if not (isinstance(agent, type) and issubclass(agent, Agent)):
        raise AgentNotFoundError(f"{name!r} is not a subclass of handiwork.agents.base.Agent")
    return cast("type[Agent]", agent)


@dataclass(frozen=True)
class InstalledAgent:
    """An installed agent. ``source`` is where its package defines it.

    ``about`` is its description, or the reason why it cannot be loaded. ``takes`` and ``gives`` are the fields of its
    inputs and outputs as code, ``inputs`` and ``outputs`` their JSON Schemas; all four are empty without the agent.
    """

    name: str
    about: str
    package: str
    source: str
    takes: str = ""
    gives: str = ""
    inputs: JsonSchema = field(default_factory=dict[str, Any])
    outputs: JsonSchema = field(default_factory=dict[str, Any])


def descriptions() -> list[InstalledAgent]:
    """Return the installed agents, by name."""
    return [_described(name, point) for name, point in installed().items()]


def _described(name: str, point: EntryPoint) -> InstalledAgent:
    package = point.dist.name if point.dist is not None else ""
    try:
        agent = find(name)
        models = (agent.inputs, agent.outputs)
        takes, gives = map(fields_text, models)
        inputs, outputs = (model.model_json_schema() for model in models)
    except (AgentNotFoundError, ImportError, AttributeError, PydanticUserError) as error:
        return InstalledAgent(name, f"cannot be loaded: {error}", package, point.value)
    return InstalledAgent(name, agent.description, package, point.value, takes, gives, inputs, outputs)


def _load(name: str) -> object:
    source, _, attribute = name.rpartition(":")
    try:
        module = _load_file(Path(source)) if source.endswith(".py") else importlib.import_module(source)
        return getattr(module, attribute)
    except (ImportError, OSError, AttributeError, SyntaxError) as error:
        raise AgentNotFoundError(f"the agent {name!r} cannot be loaded: {error}") from error


def _load_file(path: Path) -> object:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
