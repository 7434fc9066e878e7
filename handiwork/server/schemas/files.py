"""Requests and responses about files, changes and blobs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from handiwork.server.schemas.sessions import LARGEST, BelowPath, Digest, EventId, ImageType, Shape


class FilesQuery(Shape):
    """A path below the workspace, now or after event ``at``."""

    path: BelowPath = ""
    at: EventId | None = None


class FileEntry(Shape):
    """An entry of a directory; ``size`` is in bytes."""

    name: str
    kind: Literal["dir", "file", "link"]
    size: int


class FileList(Shape):
    """The entries of a directory, directories first."""

    path: str
    entries: list[FileEntry]


class ContentQuery(Shape):
    """A file to read, now or after event ``at``; with ``download`` the browser saves it."""

    path: Annotated[BelowPath, Field(min_length=1)]
    at: EventId | None = None
    download: bool = False


class UploadQuery(Shape):
    """The path that the body is written to."""

    path: Annotated[BelowPath, Field(min_length=1)]


class Uploaded(Shape):
    """A file that was written; ``size`` is in bytes."""

    path: str
    size: int


class CodeQuery(Shape):
    """A search of the workspace's code: words, or Lucene's syntax."""

    query: Annotated[str, Field(min_length=1, max_length=1_000)]


class CodeMatch(Shape):
    """A block of code, like a function: lines ``first`` to ``last`` of a file; ``text`` is the block in one line."""

    path: str
    first: int
    last: int
    type: str
    name: str
    text: str


class CodeMatches(Shape):
    """The best blocks that match, of ``total``; ``extended`` is true if none matches exactly."""

    total: int
    extended: bool
    matches: list[CodeMatch]


class DiffQuery(Shape):
    """A choice of changes: all, those of the step or turn of an event, or those between two events."""

    of: Literal["total", "turn", "step"] = "total"
    event: EventId | None = None
    first: EventId | None = Field(default=None, description="the files after this event ...")
    last: EventId | None = Field(default=None, description="... compared with those after this one")


class FileChange(Shape):
    """A path that differs, with the lines added and deleted; both are 0 for a binary file."""

    path: str
    kind: Literal["added", "modified", "deleted", "mode", "link", "type"]
    binary: bool
    added: int
    deleted: int


class Diff(Shape):
    """Changes as a patch and by file, between the events ``first`` and ``last``; null is the session's start or end."""

    patch: str
    files: list[FileChange]
    first: int | None
    last: int | None


class RejectedHunk(Shape):
    """A hunk of all changes, as the patch has it, or a file that the user takes back."""

    path: Annotated[BelowPath, Field(min_length=1)]
    hunk: Annotated[str, Field(pattern=r"^@@ -")] | None = Field(description="null takes all of the file back")


class BlobQuery(Shape):
    """A range of bytes of a blob."""

    offset: int = Field(default=0, ge=0, le=LARGEST)
    length: int | None = Field(default=None, ge=1, le=LARGEST)


class NewBlob(Shape):
    """A blob that was stored; ``media_type`` is detected from its first bytes."""

    blob: Digest
    media_type: ImageType
    size: int
