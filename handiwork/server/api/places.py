"""Operations on the places of new sessions: the folders that the server may see, and repositories to clone."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated

from pydantic import Field

from handiwork.server.operations import Operation, OperationCall, RequestRefusedError
from handiwork.server.schemas.sessions import Line, Shape
from handiwork.session.clone import clone

MOST_FOLDERS = 1000
"""The number of folders in an answer, at most."""


class FolderQuery(Shape):
    """An absolute path; "" is the home directory of the server's user."""

    path: Line = ""


class Folder(Shape):
    """A folder; ``repository`` tells whether it is the top of a git repository."""

    name: str
    repository: bool


class FolderListing(Shape):
    """A folder with those inside it by name, hidden ones left out; ``parent`` is null at the top."""

    path: str
    parent: str | None
    repository: bool
    folders: list[Folder]


class RepositoryAddress(Shape):
    """The http or https address of a git repository."""

    url: Annotated[Line, Field(min_length=1)]


class ClonedRepository(Shape):
    """The folder of a clone."""

    workspace: str


async def list_folders(call: OperationCall[FolderQuery, None]) -> FolderListing:
    """List the folders in a folder of the server's machine, for the choice of a workspace."""
    path = Path(call.query.path) if call.query.path else Path.home()
    if not path.is_absolute():
        raise RequestRefusedError(422, "path: it must be absolute")
    return await asyncio.to_thread(_listing, path)


async def clone_repository(call: OperationCall[None, RepositoryAddress]) -> ClonedRepository:
    """Clone a git repository into the data folder, in a sandbox that reaches the repository's host alone."""
    return ClonedRepository(workspace=str(await clone(call.body.url.strip(), call.supervisor.data / "clones")))


def _listing(path: Path) -> FolderListing:
    path = path.resolve()
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith(".") and _is_folder(entry))
    folders = [Folder(name=name, repository=_is_repository(path / name)) for name in names[:MOST_FOLDERS]]
    parent = None if path.parent == path else str(path.parent)
    return FolderListing(path=str(path), parent=parent, repository=_is_repository(path), folders=folders)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        entry.name.encode()  # a name that is no UTF-8 has no JSON
        return entry.is_dir()
    except (OSError, UnicodeEncodeError):
        return False


def _is_repository(path: Path) -> bool:
    try:
        return (path / ".git").exists()
    except OSError:
        return False


OPERATIONS = (
    Operation("GET", "/api/folders", list_folders, FolderListing, query=FolderQuery),
    Operation(
        "POST", "/api/clones", clone_repository, ClonedRepository, body=RepositoryAddress, status=201, refuses=(503,)
    ),
)
