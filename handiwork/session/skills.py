"""A user's own skills: Python files and packages whose functions join the notebook's, named in the settings."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from handiwork.errors import HandiworkError
from handiwork.sandbox.served import OwnSkills
from handiwork.skills import SKILLS
from handiwork.skills.documentation import SkillLine, skills_in

GROUP = "handiwork.skills"
"""The group of entry points whose values are modules of skills."""


class OwnSkillsError(HandiworkError):
    """A file or a package of skills cannot be used; the text names the reason and the remedy."""


@dataclass(frozen=True)
class SkillFile:
    """A file of skills: its module's ``name``, its ``source``, and the ``lines`` that document its functions."""

    name: str
    source: str
    lines: tuple[SkillLine, ...]

    def for_sandbox(self) -> OwnSkills:
        """Return the file in the form that a sandbox's notebook takes."""
        return {"name": self.name, "source": self.source, "functions": [line.name for line in self.lines]}


def absolute(name: str) -> str:
    """Return the name of an entry point, or a file's path made absolute so that it works from any directory."""
    return str(Path(name).expanduser().absolute()) if name.endswith(".py") else name


def load(names: Iterable[str]) -> list[SkillFile]:
    """Return the files of skills with these names: paths of Python files, or entry points. Their code is not run.

    Raises OwnSkillsError.
    """
    files: list[SkillFile] = []
    owners = dict.fromkeys(SKILLS, "the platform")
    for name in names:
        file = _load(name)
        for line in file.lines:
            if line.name in owners:
                raise OwnSkillsError(f"skills {name}: {owners[line.name]} has a skill {line.name} already: rename it")
            owners[line.name] = name
        files.append(file)
    return files


def _load(name: str) -> SkillFile:
    path = Path(name) if name.endswith(".py") else _file_of_package(name)
    try:
        source = path.read_text(encoding="utf-8")
        lines = skills_in(source)
    except OSError as error:
        raise OwnSkillsError(f"skills {name}: {path} cannot be read: {error.strerror}") from None
    except SyntaxError as error:
        raise OwnSkillsError(f"skills {name}: {path}, line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise OwnSkillsError(f"skills {name}: {path}: {error}") from None
    if not lines:
        raise OwnSkillsError(f"skills {name}: {path} defines no public function: each function is a skill")
    return SkillFile(path.stem if path.stem != "__init__" else path.parent.name, source, tuple(lines))


def _file_of_package(name: str) -> Path:
    """Return the file of an entry point's module, which is found but not run."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        known = ", ".join(sorted(points)) or "none"
        raise OwnSkillsError(f"there are no skills {name!r}; installed: {known}; name a file of your own by its path")
    try:
        spec = importlib.util.find_spec(points[name].module)
    except ImportError as error:
        raise OwnSkillsError(f"skills {name}: {points[name].value} cannot be found: {error}") from None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise OwnSkillsError(f"skills {name}: {points[name].value} is no Python module")
    return Path(spec.origin)
