"""The micro agents and pieces of knowledge of a session, by place: repository, user, packages; the nearest wins."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

from handiwork.agents.micro.definition import MicroFile, parse
from handiwork.agents.micro.front_matter import MicroFileError
from handiwork.paths import config_dir

GROUP = "handiwork.micro_agents"
"""The entry points of packages that have micro agents: each value is a package, whose folder has the files."""

AGENTS = "handiwork.agents"
"""The entry points of agents in Python."""

OWN = Path(__file__).parent / "hub"
USER_FOLDER = "micro"
REPOSITORY_FOLDER = Path(".handiwork", "agents")
LONGEST = 100_000
"""Bytes of the largest file."""

Trusted = Callable[[str], bool]
"""Returns whether the user accepted a repository's file with this text."""


def nothing_trusted(text: str) -> bool:
    """Return False: no file of a repository is loaded."""
    return False


@dataclass(frozen=True)
class MicroCatalog:
    """The valid files, by name. ``problems`` has a line for each broken one, ``untrusted`` the repository's others.

    ``packages`` tells the package of a file, "" for the user's and the repository's. ``reserved`` are the names of
    agents in Python.
    """

    agents: dict[str, MicroFile] = field(default_factory=dict[str, MicroFile])
    knowledge: dict[str, MicroFile] = field(default_factory=dict[str, MicroFile])
    packages: dict[Path, str] = field(default_factory=dict[Path, str])
    problems: list[str] = field(default_factory=list[str])
    untrusted: list[Path] = field(default_factory=list[Path])
    reserved: set[str] = field(default_factory=lambda: set(entry_points(group=AGENTS).names))

    def add(self, path: Path, text: str, package: str = "") -> None:
        """Add the file at ``path`` unless a nearer one has its name; two of one folder are a problem."""
        try:
            micro = parse(path, text)
            if not micro.keys.triggers and micro.name in self.reserved:
                raise micro.front.error(("name",), f"{micro.name} is an agent in Python: take another name")
            known = self.agents.get(micro.name) or self.knowledge.get(micro.name)
            if known is None:
                (self.knowledge if micro.keys.triggers else self.agents)[micro.name] = micro
                self.packages[path] = package
            elif known.path.parent == path.parent:
                raise micro.front.error(("name",), f"{known.path.name} has the name {micro.name} as well: rename one")
        except MicroFileError as error:
            self.problems.append(str(error))


def read_catalog(
    workspace: Path | None = None, trusted: Trusted = nothing_trusted, *, user: bool = True
) -> MicroCatalog:
    """Return the catalog of packages, the ``user``, and the workspace's repository if it is given.

    Of a repository only files are parsed whose text is ``trusted``: those in `.handiwork/agents` of the workspace, and
    of each folder above it up to the repository's root.
    """
    catalog = MicroCatalog()
    root = None if workspace is None else _repository(workspace.resolve())
    for folder in () if root is None or workspace is None else _from(workspace.resolve(), root):
        for path in sorted((folder / REPOSITORY_FOLDER).glob("*.md")):
            if not path.resolve().is_relative_to(root or folder):
                catalog.problems.append(f"{path}:1: it is a link to a file outside of the repository: copy that file")
            elif (text := _text(path, catalog)) is not None:
                if trusted(text):
                    catalog.add(path, text)
                else:
                    catalog.untrusted.append(path)
    places = [("", config_dir() / USER_FOLDER)] if user else []
    for package, folder in (*places, ("handiwork", OWN), *_packages(catalog)):
        for path in sorted(folder.glob("*.md")):
            if (text := _text(path, catalog)) is not None:
                catalog.add(path, text, package)
    return catalog


def read_file(path: Path) -> MicroFile:
    """Return the definition in one file of the user's. Raises MicroFileError."""
    problems = MicroCatalog()
    text = _text(path, problems)
    if text is None:
        raise MicroFileError(path, 1, problems.problems[0].split(":1: ", 1)[1])
    return parse(path, text)


def _repository(folder: Path) -> Path:
    """Return the root of the repository that has the folder, or the folder itself without one."""
    return next((root for root in (folder, *folder.parents) if (root / ".git").exists()), folder)


def _from(folder: Path, root: Path) -> Iterator[Path]:
    """Yield the folder and those above it, up to the root."""
    yield folder
    if folder != root:
        yield from _from(folder.parent, root)


def _packages(catalog: MicroCatalog) -> Iterator[tuple[str, Path]]:
    """Yield the name of each package with micro agents, and its folder."""
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            spec = importlib.util.find_spec(point.value)
        except (ImportError, ValueError):
            spec = None
        if spec is None or not spec.submodule_search_locations:
            problem = f"the entry point {point.name} names {point.value}, which is no package that can be imported"
            catalog.problems.append(f"{point.dist.name if point.dist else point.name}: {problem}")
            continue
        yield from ((point.dist.name if point.dist else "", Path(path)) for path in spec.submodule_search_locations)


def _text(path: Path, catalog: MicroCatalog) -> str | None:
    """Return the file's text; None, with the reason in the catalog's problems, if it is not readable text."""
    try:
        with path.open("rb") as file:
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
    catalog.problems.append(f"{path}:1: {problem}")
    return None
