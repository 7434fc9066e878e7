"""Permissions of a project: the rules and hosts that the user keeps for every new session on its folder.

They are in the user's data folder, readable by the user alone, by the folder's path. No file of a repository adds any.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from handiwork.errors import HandiworkError
from handiwork.events.base import Model
from handiwork.paths import locked, private_dirs, write_private

FILE = "permissions.json"


class PermissionsError(HandiworkError):
    """The file of kept permissions cannot be used; the text names the remedy."""

    status = 500


class Permissions(Model):
    """Rules of approvals, and hosts that the sandbox may reach, each in the words of the user's answer."""

    rules: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class _Projects(Model):
    projects: dict[str, Permissions] = Field(default_factory=dict)


@dataclass(frozen=True)
class ProjectPermissions:
    """The permissions of one folder. Every method raises PermissionsError for a file that cannot be used."""

    data: Path
    workspace: str

    def read(self) -> Permissions:
        """Return the permissions that the user keeps."""
        return self._load().projects.get(self.workspace, Permissions())

    def keep(self, permissions: Permissions) -> None:
        """Add rules and hosts for new sessions on this folder."""
        self._change(lambda old, new: dict.fromkeys([*old, *new]), permissions)

    def take_back(self, permissions: Permissions) -> None:
        """Remove rules and hosts; sessions that have them already keep them."""
        self._change(lambda old, new: [text for text in old if text not in new], permissions)

    def _change(self, change: Callable[[Iterable[str], Iterable[str]], Iterable[str]], given: Permissions) -> None:
        private_dirs(self.data)
        with locked(self.data / f"{FILE}.lock", flags=os.O_RDWR | os.O_CREAT):
            projects = dict(self._load().projects)
            old = projects.pop(self.workspace, Permissions())
            rules, hosts = change(old.rules, given.rules), change(old.hosts, given.hosts)
            if (new := Permissions(rules=tuple(rules), hosts=tuple(hosts))) != Permissions():
                projects[self.workspace] = new
            write_private(self.data / FILE, _Projects(projects=projects).model_dump_json(indent=1))

    def _load(self) -> _Projects:
        file = self.data / FILE
        try:
            return _Projects.model_validate_json(file.read_bytes())
        except FileNotFoundError:
            return _Projects()
        except (OSError, ValidationError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is damaged"
            raise PermissionsError(
                f"{file}, which lists the permissions that you kept, cannot be read: {reason}; remove it, and keep "
                "them again"
            ) from None
