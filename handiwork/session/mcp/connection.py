"""One MCP server: its start, its end, and the calls of its tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import quote

from handiwork.errors import SandboxError
from handiwork.events.action import MCPCallAction
from handiwork.events.base import Observation
from handiwork.events.observation import ErrorObservation
from handiwork.events.record import MCPServerEvent
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.egress.proxy import Egress
from handiwork.sandbox.pipe import ERRORS_KEPT, Pipe
from handiwork.session.mcp.results import SaveBytes, observation_of, tools_of
from handiwork.session.mcp.server_log import ServerLog
from handiwork.session.secrets import Secrets
from handiwork.settings import SECRET_REFERENCE, MCPServerSettings

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.client import Client
    from mcp.client.session import MessageHandlerFnT

    from handiwork.session.mcp.transports import Streams

START = 60.0
"""Seconds in which a server must have answered; a program may be downloaded in them."""

STARTS = 3
"""Starts in a row without a successful call, after which a server is not started again by this process."""

RELISTED, PAUSE, RELISTEN = 3.0, 1.0, 30.0
"""Seconds for which a call waits for the list of tools that it has changed, between two lists, and before a lost
subscription is renewed."""

PAGES = 20
"""Pages of a list of tools."""

SETTLE = 0.5
"""Seconds to wait for the exit code of a program whose stdin is closed."""

_CLOSING = 3.0

MISSING = "the MCP client is not installed: run pip install 'handiwork[mcp]'"


class MCPServerError(Exception):
    """The server cannot be used; the text says why."""


@dataclass(frozen=True)
class MCPOptions:
    """The options that a session's connections share.

    ``egress`` decides about addresses, ``save`` stores blobs, ``make_log`` makes the log of a server, ``redact`` takes
    secrets out of texts.
    """

    secrets: Secrets
    egress: Egress | None
    save: SaveBytes
    make_log: Callable[[str], ServerLog]
    redact: Callable[[str], str]


@dataclass
class _Run:
    """One start of a server: ``client`` is its client, or the reason why it did not start.

    ``problem`` describes the fault of its program, if the session ended it. ``changed`` is set while its tools have
    changed since they were listed, ``listed`` while they have not.
    """

    client: asyncio.Future[Client] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    listed: asyncio.Event = field(default_factory=asyncio.Event)
    pipe: Pipe | None = None
    refusal: str = ""
    problem: str = ""
    task: asyncio.Task[None] | None = None

    def end(self, problem: str) -> None:
        """Record that the program has ended; ``problem`` is the reason, "" if it ended by itself."""
        self.problem = self.problem or problem
        self.ended.set()

    def change(self) -> None:
        """Record that the tools have changed."""
        self.changed.set()
        self.listed.clear()


class Connection:
    """A server of the user's settings; it starts with ``start`` or the first ``call``, and again after its end."""

    def __init__(
        self,
        name: str,
        settings: MCPServerSettings,
        options: MCPOptions,
        sandbox: Callable[[], Awaitable[Sandbox]],
        report: Callable[[MCPServerEvent], None],
    ) -> None:
        self.name = name
        self._settings, self._options = settings, options
        self._sandbox, self._report = sandbox, report
        self._log = options.make_log(name)
        self._run: _Run | None = None
        self._starts = 0
        self._calls: set[asyncio.Task[Observation]] = set()

    def start(self) -> asyncio.Future[Client]:
        """Start the server if it does not run; return the future of its client, which may raise MCPServerError."""
        if self._run is None or self._run.ended.is_set():
            if self._starts >= STARTS:
                future: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
                reason = f"it was started {STARTS} times in a row without a successful call, and is not started again"
                future.set_exception(MCPServerError(reason))
                return future
            self._starts += 1
            run = self._run = _Run()
            run.client.add_done_callback(lambda future: future.cancelled() or future.exception())
            run.task = asyncio.create_task(self._serve(run))
        return self._run.client

    async def call(self, action: MCPCallAction) -> Observation:
        """Call a tool; errors of the server, and of the call, are ErrorObservations. Raises SandboxError."""
        call = asyncio.create_task(self._call(action))
        self._calls.add(call)
        try:
            return await call
        except asyncio.CancelledError:
            if (current := asyncio.current_task()) is not None and current.cancelling():
                call.cancel()
                raise
            return ErrorObservation(content="The call was interrupted.", error_id="interrupted")
        finally:
            self._calls.discard(call)

    def interrupt(self) -> None:
        """Cancel the calls that run."""
        for call in self._calls:
            call.cancel()

    async def close(self) -> None:
        """End the server."""
        run, self._run = self._run, None
        if run is None or run.task is None:
            return
        run.closing.set()
        await asyncio.wait({run.task}, timeout=_CLOSING)
        run.task.cancel()
        with suppress(asyncio.CancelledError):
            await run.task

    async def _call(self, action: MCPCallAction) -> Observation:
        try:
            client = await asyncio.shield(self.start())
        except MCPServerError as error:
            return _problem(f"The MCP server {self.name} cannot be used: {error}")
        assert self._run is not None
        run, seconds = self._run, self._settings.timeout
        try:
            async with asyncio.timeout(seconds + _CLOSING):
                result = await client.call_tool(action.tool, action.arguments, read_timeout_seconds=seconds)
        except Exception as error:  # noqa: BLE001 - the SDK raises errors of many kinds, none of which is ours
            return await self._call_failed(run, error)
        self._starts = 0
        with suppress(TimeoutError):  # the next step's prompt has the tools that the call has added
            await asyncio.wait_for(run.listed.wait(), RELISTED)
        return await observation_of(action, result, self._options.save)

    async def _call_failed(self, run: _Run, error: Exception) -> Observation:
        with suppress(TimeoutError):  # the end of a program follows the end of its output
            await asyncio.wait_for(run.ended.wait(), SETTLE)
        if not run.ended.is_set():
            late = f"{self.name} gave no answer in {self._settings.timeout:g} s"
            return _problem(run.refusal or (late if _is_timeout(error) else _reason(error)))
        text = f"The MCP server {self.name} ended during the call; the next call starts it again. {self._ending(run)}"
        return _problem(text.rstrip())

    async def _serve(self, run: _Run) -> None:
        """Keep the server and its client until it ends or is closed."""
        self._log.begin()
        try:
            if self._settings.url is None:
                await self._sandbox()  # pulling an image is not the server's own time
            async with asyncio.timeout(START) as limit:
                client_type = await asyncio.to_thread(_import_client)
                streams = self._streams(run)
                async with client_type(
                    streams,
                    message_handler=_change_handler(run),
                    logging_callback=self._log.message,
                    log_level="info",
                ) as client:
                    await self._list(run, client)
                    limit.reschedule(None)
                    run.client.set_result(client)
                    async with _beside(self._follow_tools(run, client), _subscribe(run, client)):
                        await _first(run.closing.wait(), run.ended.wait())
        except Exception as error:  # noqa: BLE001 - recorded, and raised to callers
            self._fail(run, error)
        else:
            if not run.closing.is_set():
                self._report(self._event(run, "ended", self._ending(run, with_errors=False)))
        finally:
            self._log.end()
            run.ended.set()
            if not run.client.done():
                run.client.set_exception(MCPServerError("it was closed"))

    async def _follow_tools(self, run: _Run, client: Client) -> None:
        """List the tools again whenever the server says that they have changed."""
        while True:
            await run.changed.wait()
            try:
                async with asyncio.timeout(START):
                    await self._list(run, client)
            except Exception:  # noqa: BLE001 - the tools stay as they were: a server that is lost ends, or fails calls
                run.listed.set()
            await asyncio.sleep(PAUSE)  # a server may tell of each of its new tools

    async def _list(self, run: _Run, client: Client) -> None:
        run.changed.clear()
        tools, note = tools_of(await _listed(client))
        self._report(MCPServerEvent(server=self.name, state="ready", tools=tools, content=note))
        if not run.changed.is_set():
            run.listed.set()

    def _fail(self, run: _Run, error: Exception) -> None:
        if run.closing.is_set():
            return
        if run.client.done():
            self._report(self._event(run, "ended", _reason(error)))
            return
        if isinstance(error, TimeoutError):
            reason = run.refusal or f"it did not answer in {START:.0f} s"
        else:
            ending = self._ending(run, with_errors=False) if run.ended.is_set() else ""
            reason = run.refusal or ending or _reason(error)
        event = self._event(run, "failed", reason)
        self._report(event)
        run.client.set_exception(MCPServerError(f"{reason}\n{event.errors}".rstrip()))

    @asynccontextmanager
    async def _streams(self, run: _Run) -> AsyncGenerator[Streams]:
        # Imported late: HTTP's clients take long to import, and most sessions have no server.
        from handiwork.session.mcp.transports import http_transport, pipe_transport

        if self._settings.url is not None:
            if self._options.egress is None:
                raise MCPServerError("this session has no network")
            url = self._resolved(self._settings.url, lambda value: quote(value, safe=""))
            headers = {name: self._resolved(value) for name, value in self._settings.headers.items()}

            def refused(text: str) -> None:
                run.refusal = text

            async with http_transport(
                url, headers, self._settings.timeout, self._options.egress, refused, run.end
            ) as streams:
                yield streams
            return
        assert self._settings.command is not None
        variables = {name: self._resolved(value) for name, value in self._settings.env.items()}
        sandbox = await self._sandbox()
        async with (
            sandbox.pipe([self._settings.command, *self._settings.args], variables) as pipe,
            pipe_transport(pipe, run.end) as streams,
        ):
            run.pipe = pipe
            pipe.on_errors = self._log.write
            yield streams

    def _resolved(self, text: str, written: Callable[[str], str] = str) -> str:
        """Return the text with the secrets it names, as ``written`` forms them. Raises MCPServerError without one."""
        values = self._options.secrets.values
        if missing := [name for name in SECRET_REFERENCE.findall(text) if name not in values]:
            raise MCPServerError(f"it needs the secret {missing[0]}: add --secret {missing[0]}")
        return SECRET_REFERENCE.sub(lambda match: written(values[match[1]]), text)

    def _event(self, run: _Run, state: Literal["failed", "ended"], content: str) -> MCPServerEvent:
        return MCPServerEvent(server=self.name, state=state, content=content, errors=self._errors(run))

    def _errors(self, run: _Run) -> str:
        """Return the end of the program's stderr without secrets: of a longer text, only whole lines."""
        errors = "" if run.pipe is None else run.pipe.errors
        if len(errors) == ERRORS_KEPT:
            errors = errors.partition("\n")[2]  # the rest of a cut secret is not known as one
        return self._options.redact(errors).strip()

    def _ending(self, run: _Run, *, with_errors: bool = True) -> str:
        if run.pipe is None:
            return run.problem
        code = run.pipe.exit_code
        ending = "its output ended" if code is None else f"its program ended with exit code {code}"
        ending = run.problem or ending
        errors = self._errors(run)
        return f"{ending}; on stderr:\n{errors}" if with_errors and errors else ending


def _import_client() -> type[Client]:
    try:
        return import_module("mcp.client").Client
    except ImportError as error:
        raise MCPServerError(MISSING) from error


async def _listed(client: Client) -> list[types.Tool]:
    tools: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


def _change_handler(run: _Run) -> MessageHandlerFnT:
    """Return the handler of the server's messages that records a change of its tools."""
    from mcp_types import ToolListChangedNotification

    async def handle(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            run.change()

    return handle


async def _subscribe(run: _Run, client: Client) -> None:
    """Ask the server to tell of changes of its tools; one of a protocol before 2026-07-28 does so unasked."""
    from mcp.client.subscriptions import SubscriptionLost
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    tools = client.server_capabilities.tools
    while client.protocol_version in MODERN_PROTOCOL_VERSIONS and tools is not None and tools.list_changed:
        try:
            async with client.listen(tools_list_changed=True) as changes:
                run.change()  # what has changed before is not told
                async for _ in changes:
                    pass  # the handler of the server's messages gets them too
            return
        except SubscriptionLost:
            await asyncio.sleep(RELISTEN)


@asynccontextmanager
async def _beside(*work: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    """Run the work in the background; its errors end nothing else."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _first(*waits: Awaitable[object]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _is_timeout(error: Exception) -> bool:
    """Return whether the server did not answer in time: the SDK has its own error for that."""
    from mcp import MCPError
    from mcp_types import REQUEST_TIMEOUT

    return isinstance(error, TimeoutError) or (isinstance(error, MCPError) and error.error.code == REQUEST_TIMEOUT)


def _reason(error: BaseException) -> str:
    """Return the reason in an error, even one wrapped in exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, MCPServerError | SandboxError):
        return str(error)
    return str(error) or type(error).__name__


def _problem(text: str) -> ErrorObservation:
    return ErrorObservation(content=text[:8000], error_id="mcp")
