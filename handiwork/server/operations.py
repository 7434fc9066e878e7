"""One table of operations: each is a route, checked on its way in, and a path of the OpenAPI document."""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from handiwork.errors import HandiworkError
from handiwork.log.errors import SessionMissing
from handiwork.server.schemas.sessions import Problem
from handiwork.server.supervisor import SessionSupervisor

Q = TypeVar("Q")
B = TypeVar("B")

BODY_LIMIT, UPLOAD_LIMIT = 4 << 20, 256 << 20
"""Bytes of a JSON body and of an uploaded file."""

_ID = re.compile("[0-9a-f]{1,40}")

_STATUS: dict[type[OSError], int] = {
    FileNotFoundError: 404,
    IsADirectoryError: 409,
    NotADirectoryError: 409,
    PermissionError: 409,
    OSError: 503,
}
"""The status of what the system says; of several that fit, the nearest class's."""


_NO_NAME = frozenset({errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.ELOOP})
"""What the system says of names that no file can have."""


class RequestRefusedError(HandiworkError):
    """The request cannot be carried out; ``status`` is HTTP's, the text says why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class OperationCall(Generic[Q, B]):
    """A request that fits its operation; ``query`` and ``body`` are None where the operation has none."""

    supervisor: SessionSupervisor
    request: Request
    query: Q
    body: B

    @property
    def session(self) -> str:
        """The session's id, or the first characters of it, as the path has it. Raises SessionMissing."""
        found = str(self.request.path_params["session"])
        if not _ID.fullmatch(found):
            raise SessionMissing(f"{found[:50]!r} is no session's id")
        return found

    async def upload(self, limit: int = UPLOAD_LIMIT) -> AsyncIterator[bytes]:
        """Give the body as it comes. Raises RefusedError for more than ``limit`` bytes."""
        size = 0
        said = self.request.headers.get("content-length", "")
        if said.isascii() and said.isdigit() and int(said[:20]) > limit:
            raise too_large(limit)
        async for piece in self.request.stream():
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            yield piece


Handler = Callable[[OperationCall[Any, Any]], Awaitable[BaseModel | Response]]


@dataclass(frozen=True)
class Operation:
    """One request that the server understands; ``answer`` None is bytes of the media type ``gives``."""

    method: str
    path: str
    handler: Handler
    answer: type[BaseModel] | None
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    takes: str = ""
    """The media type of a body that is not JSON."""
    gives: str = "*/*"
    status: int = 200
    refuses: tuple[int, ...] = field(default=(404, 409, 503))

    @property
    def name(self) -> str:
        """The operation's id in the document."""
        return self.handler.__name__  # pyright: ignore[reportAttributeAccessIssue] (handlers are functions)

    def route(self, supervisor: Callable[[], SessionSupervisor]) -> Route:
        """Return it as Starlette has it."""

        async def endpoint(request: Request) -> Response:
            try:
                answer = await self.handler(await self._call(supervisor(), request))
            except ClientDisconnect:
                return Response(status_code=499)
            except (HandiworkError, OSError) as error:
                return refused(_status(error), _said(error))
            if isinstance(answer, Response):
                return answer
            return as_json(answer, self.status)

        return Route(self.path, endpoint, methods=[self.method], name=self.name)

    async def _call(self, supervisor: SessionSupervisor, request: Request) -> OperationCall[Any, Any]:
        query = body = None
        try:
            if self.query is not None:
                query = self.query.model_validate(dict(request.query_params))
            if self.body is not None:
                body = self.body.model_validate_json(await _whole(request))
        except ValidationError as error:
            raise RequestRefusedError(422, explain(error)) from None
        return OperationCall(supervisor, request, query, body)


def too_large(limit: int) -> RequestRefusedError:
    """Return the error for a body of more than ``limit`` bytes."""
    return RequestRefusedError(413, f"the body is larger than {limit} bytes")


async def _whole(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestRefusedError(415, "the body must be application/json")
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > BODY_LIMIT:
            raise too_large(BODY_LIMIT)
    return bytes(found)


def as_json(answer: BaseModel, status: int = 200) -> Response:
    """Return the answer as JSON."""
    return Response(answer.model_dump_json(), status, media_type="application/json")


def refused(status: int, text: str) -> Response:
    """Return why a request was refused."""
    return as_json(Problem(error=text), status)


def explain(error: ValidationError) -> str:
    """Return what does not fit, a line for each field."""
    return "\n".join(
        f"{'.'.join(str(step) for step in problem['loc']) or 'the request'}: {problem['msg']}"
        for problem in error.errors(include_url=False)
    )


def _status(error: HandiworkError | OSError) -> int:
    if isinstance(error, HandiworkError):
        return error.status
    if error.errno in _NO_NAME:
        return 422
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
