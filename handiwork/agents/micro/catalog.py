"""The micro agents and pieces of knowledge of a session, by place: repository, user, packages; the nearest wins."""

from __future__ import annotations

import importlib.util
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from handiwork.paths import config_dir

if TYPE_CHECKING:
    # Imported late, with YAML and templates: most sessions have no file to parse.
    from handiwork.agents.micro.definition import MicroFile

GROUP = "handiwork.micro_agents"
"""The entry points of packages that have micro agents: each value is a package, whose folder has the files."""

AGENTS = "handiwork.agents"
"""The entry points of agents in Python."""

OWN = Path(__file__).parent / "hub"
USER_FOLDER = "micro"
TRIGGERS = "triggers"
"""The key that makes a file a piece of knowledge."""

LONGEST = 100_000
"""Bytes of the largest file."""


@dataclass(frozen=True)
class CatalogProblem:
    """The reason why a file, or the package ``source``, has no agent; ``line`` is that of the file, 0 for a package."""

    source: str
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.why}" if self.line else f"{self.source}: {self.why}"


class MicroCatalog:
    """The valid files, by name. ``problems`` has each broken one that was parsed.

    ``packages`` tells the package of a file, "" for the user's and the repository's. Agents added with ``later`` are
    parsed at the first lookup of an agent, because most sessions need none.
    """

    def __init__(self) -> None:
        self.packages: dict[Path, str] = {}
        self.problems: list[CatalogProblem] = []
        self._agents: dict[str, MicroFile] = {}
        self._knowledge: dict[str, MicroFile] = {}
        self._later: list[tuple[Path, str, str]] = []

    @property
    def agents(self) -> Mapping[str, MicroFile]:
        """The agents."""
        self.parse_later()
        return self._agents

    @property
    def knowledge(self) -> Mapping[str, MicroFile]:
        """The pieces of knowledge."""
        return self._knowledge

    def parse_later(self) -> None:
        """Parse the files that are not parsed yet."""
        while self._later:
            self.add(*self._later.pop(0))

    def add(self, path: Path, text: str, package: str = "", *, later: bool = False) -> None:
        """Add the file at ``path`` unless a nearer one has its name; two of one folder are a problem."""
        if later and TRIGGERS not in text:
            self._later.append((path, text, package))
            return
        from handiwork.agents.micro.definition import MicroFileError, parse

        try:
            micro = parse(path, text)
            if not micro.keys.triggers and micro.name in self._reserved:
                raise micro.error(("name",), f"{micro.name} is an agent in Python: take another name")
            known = self._agents.get(micro.name) or self._knowledge.get(micro.name)
            if known is None:
                (self._knowledge if micro.keys.triggers else self._agents)[micro.name] = micro
                self.packages[path] = package
            elif known.path.parent == path.parent:
                raise micro.error(("name",), f"{known.path.name} has the name {micro.name} as well: rename one")
        except MicroFileError as error:
            self.problems.append(CatalogProblem(str(error.path), error.line, error.problem))

    @cached_property
    def _reserved(self) -> set[str]:
        """The names of agents in Python."""
        return set(entry_points(group=AGENTS).names)


def read_catalog(accepted: Mapping[Path, str] = MappingProxyType({}), *, user: bool = True) -> MicroCatalog:
    """Return the catalog of packages, of the ``user``, and of a repository: its ``accepted`` texts by path."""
    catalog = MicroCatalog()
    for path, text in accepted.items():
        catalog.add(path, text)
    places = [("", config_dir() / USER_FOLDER)] if user else []
    for package, folder in (*places, ("handiwork", OWN), *_packages(catalog)):
        for path in sorted(folder.glob("*.md")):
            if (text := _text(path, catalog)) is not None:
                catalog.add(path, text, package, later=bool(package))
    return catalog


def read_file(path: Path) -> MicroFile:
    """Return the definition in one file of the user's. Raises MicroFileError."""
    from handiwork.agents.micro.definition import MicroFileError, parse

    problems = MicroCatalog()
    text = _text(path, problems)
    if text is None:
        raise MicroFileError(path, 1, problems.problems[0].why)
    return parse(path, text)


def _packages(catalog: MicroCatalog) -> Iterator[tuple[str, Path]]:
    """Yield the name of each package with micro agents, and its folder."""
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            spec = importlib.util.find_spec(point.value)
        except (ImportError, ValueError):
            spec = None
        if spec is None or not spec.submodule_search_locations:
            problem = f"the entry point {point.name} names {point.value}, which is no package that can be imported"
            catalog.problems.append(CatalogProblem(point.dist.name if point.dist else point.name, 0, problem))
            continue
        yield from ((point.dist.name if point.dist else "", Path(path)) for path in spec.submodule_search_locations)


def _text(path: Path, catalog: MicroCatalog) -> str | None:
    """Return the file's text; None, with the reason in the catalog's problems, if it is not readable text."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
                raise ValueError("it is a pipe, not a file")
            data = file.read(LONGEST + 1)
        if len(data) > LONGEST:
            raise ValueError(f"it is larger than {LONGEST} bytes: shorten it")
        return data.decode()
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except ValueError as error:
        problem = str(error)
    except OSError as error:
        problem = f"it cannot be read: {error.strerror}"
    catalog.problems.append(CatalogProblem(str(path), 1, problem))
    return None
