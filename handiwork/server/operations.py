"""Operations of the HTTP API: each gives a route that validates requests, and a path of the OpenAPI document."""

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
from handiwork.log.eventlog import EventLog
from handiwork.server.schemas.sessions import Problem
from handiwork.server.supervisor import SessionSupervisor

Q = TypeVar("Q")
B = TypeVar("B")

BODY_LIMIT, UPLOAD_LIMIT = 4 << 20, 256 << 20
"""The maximum bytes of a JSON body and of an uploaded file."""

_ID = re.compile("[0-9a-f]{1,40}")

_STATUS: dict[type[OSError], int] = {
    FileNotFoundError: 404,
    IsADirectoryError: 409,
    NotADirectoryError: 409,
    PermissionError: 409,
    OSError: 503,
}
"""The HTTP status for each OSError; the nearest class in the exception's MRO counts."""


_NO_NAME = frozenset({errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.ELOOP})
"""The error numbers for names that no file can have."""


class RequestRefusedError(HandiworkError):
    """The server refuses a request: ``status`` is the HTTP status, the text the reason."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class OperationCall(Generic[Q, B]):
    """A validated request; ``query`` and ``body`` are None if the operation has none."""

    supervisor: SessionSupervisor
    request: Request
    query: Q
    body: B

    async def log(self) -> EventLog:
        """Return the log of the session whose id, or a prefix of it, is in the path. Raises SessionMissing."""
        session = str(self.request.path_params["session"])
        if not _ID.fullmatch(session):
            raise SessionMissing(f"{session[:50]!r} is not a session id")
        return await self.supervisor.store.log(session)

    async def upload(self, limit: int = UPLOAD_LIMIT) -> AsyncIterator[bytes]:
        """Yield the body as it arrives. Raises RequestRefusedError for more than ``limit`` bytes."""
        size = 0
        length = self.request.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > limit:
            raise too_large(limit)
        async for piece in self.request.stream():
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            yield piece


Handler = Callable[[OperationCall[Any, Any]], Awaitable[BaseModel | Response]]


@dataclass(frozen=True)
class Operation:
    """One kind of request; ``answer`` None means that the response is bytes of the media type ``gives``."""

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
        """The operation's id in the OpenAPI document."""
        return self.handler.__name__  # pyright: ignore[reportAttributeAccessIssue] (handlers are functions)

    def route(self, supervisor: Callable[[], SessionSupervisor]) -> Route:
        """Return the operation as a Starlette route."""

        async def endpoint(request: Request) -> Response:
            try:
                answer = await self.handler(await self._call(supervisor(), request))
            except ClientDisconnect:
                return Response(status_code=499)
            except (HandiworkError, OSError) as error:
                return refusal(_status(error), _message(error))
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
                body = self.body.model_validate_json(await _read_body(request))
        except ValidationError as error:
            raise RequestRefusedError(422, explain(error)) from None
        return OperationCall(supervisor, request, query, body)


def too_large(limit: int) -> RequestRefusedError:
    """Return the error for a body of more than ``limit`` bytes."""
    return RequestRefusedError(413, f"the body is larger than {limit} bytes")


async def _read_body(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestRefusedError(415, "the body must be application/json")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > BODY_LIMIT:
            raise too_large(BODY_LIMIT)
    return bytes(body)


def as_json(answer: BaseModel, status: int = 200) -> Response:
    """Return a model as a JSON response."""
    return Response(answer.model_dump_json(), status, media_type="application/json")


def refusal(status: int, text: str) -> Response:
    """Return the response to a refused request."""
    return as_json(Problem(error=text), status)


def explain(error: ValidationError) -> str:
    """Return the validation errors, one line per field."""
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


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
