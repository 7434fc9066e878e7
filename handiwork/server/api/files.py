"""Operations on a session's files, code and changes, and blobs. Files that agents wrote are never served as a page."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator
from typing import BinaryIO
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from handiwork.agents.history import is_from_user
from handiwork.events.action import CodeBlocksAction
from handiwork.events.base import Event
from handiwork.events.observation import CodeBlocksObservation, ErrorObservation
from handiwork.events.pictures import LONGEST_SIDE, PNG, longest_side
from handiwork.events.record import StepStarted
from handiwork.log.eventlog import EventLog
from handiwork.server.operations import Operation, OperationCall, RequestRefusedError
from handiwork.server.schemas.files import (
    BlobQuery,
    CodeMatch,
    CodeMatches,
    CodeQuery,
    ContentQuery,
    Diff,
    DiffQuery,
    FileChange,
    FileEntry,
    FileList,
    FilesQuery,
    NewBlob,
    RejectedHunk,
    Uploaded,
    UploadQuery,
)
from handiwork.server.schemas.sessions import ImageType
from handiwork.server.supervisor import SessionSupervisor
from handiwork.session import open as assemble
from handiwork.session.config import config_of
from handiwork.session.steps.code_search import CodeSearch
from handiwork.session.storage.layout import session_dir
from handiwork.session.time_travel.history import changes_from_to, files, revert_file
from handiwork.workspace.changes import Change
from handiwork.workspace.patch import diffstat, unified_diff, without_hunk

IMAGE_LIMIT = 3_750_000
"""The maximum bytes of a picture that models accept."""

MATCHES = 50
"""The most blocks that a search of the code returns."""

_PIECE = 1 << 16
_BEGINNINGS: dict[bytes, ImageType] = {PNG: "image/png", b"\xff\xd8\xff": "image/jpeg"}
_HARMLESS = {"content-security-policy": "sandbox; default-src 'none'", "x-content-type-options": "nosniff"}


async def list_files(call: OperationCall[FilesQuery, None]) -> FileList:
    """List a directory of the session's workspace, now or after an event."""
    tree = await files(call.supervisor.data, await call.log(), call.query.at)
    entries = await asyncio.to_thread(tree.entries, call.query.path)
    shown = [FileEntry(name=_clear(entry.name), kind=entry.kind, size=entry.size) for entry in entries]
    return FileList(path=call.query.path, entries=shown)


async def read_file(call: OperationCall[ContentQuery, None]) -> Response:
    """Return the bytes of a file of the workspace, now or after an event."""
    path = call.query.path
    tree = await files(call.supervisor.data, await call.log(), call.query.at)
    stream = await asyncio.to_thread(tree.open, path)
    first = await asyncio.to_thread(stream.read, _PIECE)
    headers = dict(_HARMLESS)
    if call.query.download:
        name = path.rpartition("/")[2].encode(errors="surrogateescape")
        headers["content-disposition"] = f"attachment; filename*=UTF-8''{quote(name)}"
    return StreamingResponse(_pieces(first, stream), media_type=_media_type(first), headers=headers)


async def search_code(call: OperationCall[CodeQuery, None]) -> CodeMatches:
    """Search the code of the workspace as it is now, in the index that the agents' searches use. Nothing of it runs."""
    log = await call.log()
    files = (await config_of(log)).files(session_dir(call.supervisor.data, log.id))
    found = await CodeSearch(files).run(CodeBlocksAction(query=call.query.query, count=MATCHES))
    if not isinstance(found, CodeBlocksObservation):
        is_broken = isinstance(found, ErrorObservation) and found.error_id == "bad_query"
        raise RequestRefusedError(422 if is_broken else 503, found.content)
    matches = [
        CodeMatch(
            path=_clear(block.file_path),
            first=block.first,
            last=block.last,
            type=block.type,
            name=block.name,
            text=_clear(block.line),
        )
        for block in found.blocks
    ]
    return CodeMatches(total=found.total, extended=found.extended, matches=matches)


async def upload_file(call: OperationCall[UploadQuery, None]) -> Uploaded:
    """Write the body to a file of the workspace, through the session's sandbox."""
    log, size = await call.log(), 0

    async def counted() -> AsyncIterator[bytes]:
        nonlocal size
        async for piece in call.upload():
            size += len(piece)
            yield piece

    await _write(call.supervisor, log, call.query.path, counted())
    return Uploaded(path=call.query.path, size=size)


async def show_diff(call: OperationCall[DiffQuery, None]) -> Diff:
    """Return the changes of the whole session, of a step or turn, or between two events."""
    supervisor, query = call.supervisor, call.query
    log = await call.log()
    first, last = query.first, query.last
    if query.of != "total":
        if query.event is None:
            raise RequestRefusedError(422, "event: name an event of the step or turn")
        first, last = await _part(log, query.of == "turn", query.event)
    if first is None and last is None:
        changes = await assemble.changes(supervisor.data, log)
    else:
        changes = await changes_from_to(supervisor.data, log, first, last)
    return await asyncio.to_thread(_diff, changes, first, last)


async def reject_hunk(call: OperationCall[None, RejectedHunk]) -> Uploaded:
    """Take a hunk of all changes back, or all of a file: the base's lines are there again."""
    log, path = await call.log(), call.body.path
    changes = await assemble.changes(call.supervisor.data, log)
    change = next((change for change in changes if change.path == path), None)
    if change is None:
        raise RequestRefusedError(409, f"{path} is not changed; look at the changes again")
    if call.body.hunk is None:
        async with call.supervisor.opened(log) as opened:
            await revert_file(await opened.sandbox(), change)
        return Uploaded(path=path, size=change.old.size if change.old is not None else 0)
    content = await asyncio.to_thread(without_hunk, change, call.body.hunk)

    async def whole() -> AsyncIterator[bytes]:
        yield content

    await _write(call.supervisor, log, path, whole())
    return Uploaded(path=path, size=len(content))


async def add_blob(call: OperationCall[None, None]) -> NewBlob:
    """Store a picture for a message."""
    data = b"".join([piece async for piece in call.upload(IMAGE_LIMIT)])
    media_type = _picture(data)
    if media_type is None:
        raise RequestRefusedError(422, "the body is neither a PNG nor a JPEG picture")
    if longest_side(data) > LONGEST_SIDE:
        raise RequestRefusedError(422, f"models accept no picture of more than {LONGEST_SIDE} pixels a side")
    return NewBlob(blob=await call.supervisor.store.blobs.put(data), media_type=media_type, size=len(data))


async def read_blob(call: OperationCall[BlobQuery, None]) -> Response:
    """Return a blob, or a part of it; the header X-Blob-Size has the blob's size."""
    digest, blobs = str(call.request.path_params["blob"]), call.supervisor.store.blobs
    path, size = blobs.path(digest), await blobs.size(digest)
    first = await blobs.read(digest, 0, _PIECE)
    headers = {**_HARMLESS, "x-blob-size": str(size), "cache-control": "private, max-age=31536000, immutable"}
    stream = path.open("rb")
    stream.seek(min(call.query.offset, size))
    return StreamingResponse(_pieces(b"", stream, call.query.length), media_type=_media_type(first), headers=headers)


async def _write(supervisor: SessionSupervisor, log: EventLog, path: str, content: AsyncIterator[bytes]) -> None:
    """Write a file of the workspace through the session's sandbox."""
    async with supervisor.opened(log) as opened:
        sandbox = await opened.sandbox()
        try:
            await sandbox.upload(path, content)
        except OSError as error:
            raise RequestRefusedError(409, f"{path} cannot be written: {error}") from None


async def _pieces(first: bytes, stream: BinaryIO, length: int | None = None) -> AsyncIterator[bytes]:
    try:
        if first:
            yield first
        while piece := await asyncio.to_thread(stream.read, _PIECE if length is None else min(_PIECE, length)):
            length = None if length is None else length - len(piece)
            yield piece
    finally:
        stream.close()


def _picture(first: bytes) -> ImageType | None:
    return next((kind for beginning, kind in _BEGINNINGS.items() if first.startswith(beginning)), None)


def _media_type(first: bytes) -> str:
    """Return the media type of the first bytes: a picture, text or bytes, never a type that a browser would run."""
    if picture := _picture(first):
        return picture
    if first.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if first[:4] == b"RIFF" and first[8:12] == b"WEBP":
        return "image/webp"
    try:
        # The end of a piece may split a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(first, final=len(first) < _PIECE)
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "application/octet-stream" if "\0" in text else "text/plain; charset=utf-8"


async def _part(log: EventLog, turn: bool, event: int) -> tuple[int, int]:
    """Return the events around the step or turn of an event. Raises RequestRefusedError if there is no such event."""
    first, last = 0, 0
    for item in await log.read():
        last = item.id
        if _begins(item, turn):
            if item.id > event:
                return first, item.id - 1
            first = item.id
    if event > last:
        raise RequestRefusedError(404, f"session {log.id} has no event {event}: its events are 1 to {last}")
    return first, last


def _begins(event: Event, turn: bool) -> bool:
    if turn:
        return is_from_user(event)
    return isinstance(event, StepStarted)


def _diff(changes: list[Change], first: int | None, last: int | None) -> Diff:
    file_changes = [
        FileChange(path=_clear(path), kind=change.kind, binary=change.binary, added=added, deleted=deleted)
        for change, (path, added, deleted) in zip(changes, diffstat(changes), strict=True)
    ]
    return Diff(patch=_clear(unified_diff(changes)), files=file_changes, first=first, last=last)


def _clear(text: str) -> str:
    """Return the text with bytes that are not UTF-8, as in file names, replaced."""
    return text.encode(errors="replace").decode()


_AT = "/api/sessions/{session}"
_BYTES = "application/octet-stream"
OPERATIONS = (
    Operation("GET", f"{_AT}/files", list_files, FileList, query=FilesQuery),
    Operation("GET", f"{_AT}/files/content", read_file, None, query=ContentQuery),
    Operation("GET", f"{_AT}/code", search_code, CodeMatches, query=CodeQuery),
    Operation("PUT", f"{_AT}/files/content", upload_file, Uploaded, query=UploadQuery, takes=_BYTES),
    Operation("GET", f"{_AT}/diff", show_diff, Diff, query=DiffQuery),
    Operation("POST", f"{_AT}/diff/reject", reject_hunk, Uploaded, body=RejectedHunk),
    Operation("POST", "/api/blobs", add_blob, NewBlob, takes=_BYTES, status=201, refuses=(503,)),
    Operation("GET", "/api/blobs/{blob}", read_blob, None, query=BlobQuery),
)
