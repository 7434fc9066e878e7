"""Find agents by name: installed ones, micro agents, "module:Class", "file.py:Class", or a file of CONFIGURED."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import PydanticUserError

from handiwork.agents.base import Agent
from handiwork.agents.interface import fields_text
from handiwork.errors import HandiworkError
from handiwork.llm.types import JsonSchema

if TYPE_CHECKING:
    from handiwork.agents.micro.catalog import MicroCatalog

CONFIGURED = (".md", ".yaml", ".yml", ".json", ".toml")
"""The endings of files that are agents: micro agents, configurations of SWEAgent, swarms, settings of CodeNavAgent."""

GROUP = "handiwork.agents"
ALIASES = {"gptswarm": "SwarmAgent", "gptswarmagent": "SwarmAgent"}
"""The installed agent by the name that its paper gives it, in small letters without hyphens."""

OWN_AGENT = "name your own as file.py:Class, module:Class, file.md, file.yaml, file.json or file.toml"


class AgentNotFoundError(HandiworkError):
    """No agent has this name, or it cannot be loaded; for an unknown name the text lists the installed agents."""


def installed() -> dict[str, EntryPoint]:
    """Return the installed agents' entry points by name, without loading them."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def find(name: str, catalog: MicroCatalog | None = None) -> type[Agent]:
    """Return the agent class named ``name``; the ending Agent may be left out, and case and hyphens do not matter.

    The micro agents are those of the ``catalog``, by default those of the user and of packages. Raises
    AgentNotFoundError, and for an agent whose file is invalid MicroFileError, SWEConfigError, SwarmError or
    CodeNavSettingsError.
    """
    if name.endswith(".md"):
        from handiwork.agents.micro.agent import agent_class
        from handiwork.agents.micro.catalog import read_file

        return agent_class(read_file(Path(name).expanduser()), _find_class)
    if name.endswith(".json"):
        from handiwork.agents.swarm import load_agent as load_swarm

        return load_swarm(Path(name).expanduser())
    if name.endswith(".toml"):
        from handiwork.agents.codenav import load_agent as load_settings

        return load_settings(Path(name).expanduser())
    if name.endswith(CONFIGURED):
        from handiwork.agents.swe_agent import load_agent

        return load_agent(Path(name).expanduser())
    points = installed()
    known = _known(name, points) or ALIASES.get(_plain(name))
    if known == name or ":" in name:
        return _find_class(name)
    return _find_micro(name, catalog, known)


def _known(name: str, names: Iterable[str]) -> str | None:
    """Return the one of the names that is meant, None if none is."""
    by_plain = {_plain(full): full for full in names}
    exact = (full for full in (name, f"{name}Agent") if full in by_plain.values())
    return next(exact, None) or by_plain.get(_plain(name)) or by_plain.get(_plain(f"{name}Agent"))


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").casefold()


def names_a_file(name: str) -> bool:
    """Return whether ``find`` opens a file for that name, or imports a module that no loaded agent has imported.

    Only the user may choose such a name: an agent's Python runs on this machine, outside the sandbox.
    """
    module, colon, _ = name.rpartition(":")
    return name.endswith(CONFIGURED) or (bool(colon) and module not in sys.modules)


def _find_class(name: str) -> type[Agent]:
    """Return an agent that is a class in Python. Raises AgentNotFoundError."""
    point = installed().get(name)
    if point is None and ":" not in name:
        raise AgentNotFoundError(f"there is no agent {name!r} in Python; installed: {_names(installed())}; {OWN_AGENT}")
    agent = _load(name, point)
    if not (isinstance(agent, type) and issubclass(agent, Agent)):
        raise AgentNotFoundError(f"{name!r} is not a subclass of handiwork.agents.base.Agent")
    return cast("type[Agent]", agent)


def _find_micro(name: str, catalog: MicroCatalog | None, other: str | None) -> type[Agent]:
    """Return the micro agent; the agent ``other`` in Python comes first unless a micro agent has exactly the name."""
    # Imported late: most sessions have an agent in Python.
    from handiwork.agents.micro.agent import agent_class
    from handiwork.agents.micro.catalog import read_catalog

    catalog = read_catalog() if catalog is None else catalog
    if other is not None and name not in catalog.agents:
        return _find_class(other)
    if known := _known(name, catalog.agents):
        return agent_class(catalog.agents[known], _find_class)
    lines = [f"there is no agent {name!r}; installed: {_names([*installed(), *catalog.agents])}; {OWN_AGENT}"]
    raise AgentNotFoundError("\n".join([*lines, *map(str, catalog.problems)]))


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


@dataclass(frozen=True)
class InstalledAgent:
    """An installed agent. ``source`` is its definition, as ``module:attribute`` or the path of a file.

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


def descriptions(catalog: MicroCatalog | None = None) -> list[InstalledAgent]:
    """Return the installed agents and the micro agents of the ``catalog``, by name; see ``find``."""
    from handiwork.agents.micro.catalog import read_catalog

    catalog = read_catalog() if catalog is None else catalog
    agents = [
        _described(name, point.dist.name if point.dist is not None else "", point.value)
        for name, point in installed().items()
    ]
    agents += [
        _described(name, catalog.packages[micro.path], str(micro.path), catalog)
        for name, micro in catalog.agents.items()
    ]
    return sorted(agents, key=lambda agent: agent.name)


def _described(name: str, package: str, source: str, catalog: MicroCatalog | None = None) -> InstalledAgent:
    try:
        agent = find(name, catalog)
        models = (agent.inputs, agent.outputs)
        takes, gives = map(fields_text, models)
        inputs, outputs = (model.model_json_schema() for model in models)
    except (HandiworkError, ImportError, AttributeError, PydanticUserError) as error:
        return InstalledAgent(name, f"cannot be loaded: {error}", package, source)
    return InstalledAgent(name, agent.description, package, source, takes, gives, inputs, outputs)


def _load(name: str, point: EntryPoint | None) -> object:
    source, _, attribute = name.rpartition(":")
    try:
        if point is not None:
            return point.load()
        module = _load_file(Path(source)) if source.endswith(".py") else importlib.import_module(source)
        return getattr(module, attribute)
    except Exception as error:  # a module of others may raise anything
        raise AgentNotFoundError(f"the agent {name!r} cannot be loaded: {error}") from error


def _load_file(path: Path) -> object:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
