"""``handiwork mcp``: an MCP server whose tools are the sessions of a data folder, for other programs and agents.

Each tool calls operations of the HTTP API within this process, so that both check and do the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import httpx2
from pydantic import Field
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from handiwork.agents.registry import names_a_file
from handiwork.agents.rendering import shorten
from handiwork.errors import HandiworkError
from handiwork.events.base import Action, Event, Observation
from handiwork.events.codec import from_dict
from handiwork.events.describe import describe
from handiwork.server.access import AccessGuard, names_of
from handiwork.server.app import application
from handiwork.server.serve import bind, run_server, token_of
from handiwork.server.supervisor import SessionSupervisor
from handiwork.session.apply import preview_session
from handiwork.workspace.apply import ConflictError
from handiwork.workspace.files.names import quoted

if TYPE_CHECKING:
    from mcp.server import MCPServer

Tool = Callable[..., Awaitable[dict[str, Any]]]

INSTRUCTIONS = (
    "Runs coding agents in sandboxes, each on a copy of a directory. start begins a session; follow it until its state "
    "is no longer running; answer its questions, and send a message to one that was interrupted; diff shows its "
    "changes, and apply brings them into the directory."
)
MISSING = "the MCP library is not installed: run pip install 'handiwork[mcp]'"

HOST = "127.0.0.1"

TEXT, EVENTS, PATCH = 2_000, 100, 200_000
"""Characters of an event's text, events of one answer, and characters of a patch."""

WAIT = 30.0
"""Seconds for which ``follow`` waits, at most."""

FOLD = 5.0
"""Seconds for the state of a running session to catch up with its log, at most."""

SessionId = Annotated[str, Field(description="The session's id, or the beginning of it.")]


class RefusedError(HandiworkError):
    """The server refuses a request; the text is its reason."""


class SessionTools:
    """The tools, on the HTTP API of an application in this process and on its supervisor."""

    def __init__(self, client: httpx2.AsyncClient, supervisor: SessionSupervisor) -> None:
        self._client, self._supervisor = client, supervisor

    async def start(
        self,
        task: Annotated[str, Field(description="The task, in plain words.")],
        workspace: Annotated[str, Field(description="The directory's absolute path; the agent works on a copy.")],
        model: Annotated[str | None, Field(description="The model; the user's default if left out.")] = None,
        agent: Annotated[str | None, Field(description="The agent; the user's default if left out.")] = None,
        confirmation: Annotated[
            Literal["never", "risky", "always"] | None, Field(description="Which actions wait for an answer.")
        ] = None,
        max_iterations: Annotated[int | None, Field(description="Steps after which it pauses.")] = None,
        max_cost: Annotated[float | None, Field(description="US dollars after which it pauses.")] = None,
        max_time: Annotated[float | None, Field(description="Seconds after which it pauses.")] = None,
    ) -> dict[str, Any]:
        """Start a session on a task, and return at once."""
        if agent and names_a_file(agent):
            raise RefusedError(f"{agent!r} is not the name of an installed agent")
        limits = {"iterations": max_iterations, "cost": max_cost, "time": max_time}
        given = {name: value for name, value in limits.items() if value is not None}
        body = {
            "task": task,
            "workspace": workspace,
            "model": model,
            "agent": agent,
            "confirmation": confirmation,
            "limits": given or None,
        }
        return _summary(await self._call("POST", "/api/sessions", json=body))

    async def list_sessions(
        self, limit: Annotated[int, Field(ge=1, le=100, description="How many.")] = 20
    ) -> dict[str, Any]:
        """List the sessions that need the user, then the newest."""
        page = await self._call("GET", "/api/sessions", params={"limit": limit})
        names = ("id", "title", "agent", "model", "workspace", "updated")
        return {"sessions": [{name: row[name] for name in names} | {"state": _state(row)} for row in page["sessions"]]}

    async def follow(
        self,
        session: SessionId,
        after: Annotated[int, Field(ge=0, description="The cursor of the last answer.")] = 0,
        wait: Annotated[float, Field(ge=0, le=WAIT, description="Seconds to wait for new events.")] = 20.0,
    ) -> dict[str, Any]:
        """Return a session's events after the cursor, and its state; wait for an event if there is none."""
        log = await self._supervisor.store.log(session)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                async for head in log.heads():
                    if head > after or (await self._supervisor.state(log)).agent_state != "running":
                        break
        # The state is older than the events or as old, so that a program that sees an end has seen all before it.
        view = await self._view(log.id)
        query = {"after": after, "limit": EVENTS}
        page = await self._call("GET", f"/api/sessions/{log.id}/events", params=query)
        events = [from_dict(event) for event in page["events"]]
        cursor = events[-1].id if events else after
        return {
            **view,
            "cursor": cursor,
            "more": cursor < page["head"],
            "events": [line for event in events if (line := _line(event)) is not None],
        }

    async def answer(
        self,
        session: SessionId,
        message: Annotated[str | None, Field(description="A message to the agent; resumes the session.")] = None,
        action: Annotated[int | None, Field(description="The action that waits for approval.")] = None,
        allowed: Annotated[bool | None, Field(description="Whether it may run.")] = None,
        remember: Annotated[bool, Field(description="Allow by the rule shown, from now on.")] = False,
        comment: Annotated[str, Field(description="The reason for a refusal.")] = "",
    ) -> dict[str, Any]:
        """Send a message to a session's agent, or allow or refuse an action that waits for approval."""
        path = f"/api/sessions/{session}"
        if (message is None) == (action is None) or (action is None) != (allowed is None):
            raise RefusedError("give either a message, or an action and allowed")
        if message is not None:
            await self._call("POST", f"{path}/messages", json={"content": message})
        else:
            answer = {"action": action, "allowed": allowed, "remember": remember, "comment": comment}
            await self._call("POST", f"{path}/approvals", json=answer)
        return await self._view(session)

    async def interrupt(self, session: SessionId) -> dict[str, Any]:
        """Interrupt a session; a message resumes it."""
        await self._call("POST", f"/api/sessions/{session}/interrupt")
        return await self._view(session)

    async def diff(self, session: SessionId) -> dict[str, Any]:
        """Return a session's changes to its copy of the directory, as a patch."""
        diff = await self._call("GET", f"/api/sessions/{session}/diff")
        return {"files": diff["files"], "patch": shorten(diff["patch"], PATCH)}

    async def apply(
        self,
        session: SessionId,
        dry_run: Annotated[bool, Field(description="Only list the changes.")] = False,
    ) -> dict[str, Any]:
        """Bring a session's changes into the user's directory: all of them, or on a conflict none."""
        if not dry_run:
            answer = await self._call("POST", f"/api/sessions/{session}/apply", json={})
            return {"notes": answer.pop("warnings"), **answer}
        plan = await preview_session(self._supervisor.data, await self._supervisor.store.log(session))
        if plan.conflicts:
            raise ConflictError([(conflict.path, conflict.reason) for conflict in plan.conflicts])
        return {
            "workspace": str(plan.workspace),
            "written": [quoted(path) for path in plan.applied.written],
            "deleted": [quoted(path) for path in plan.applied.deleted],
            "unchanged": [quoted(path) for path in plan.applied.unchanged],
            "branch": None,
            "notes": list(plan.applied.warnings),
        }

    async def _view(self, session: str) -> dict[str, Any]:
        """Return the session once the state in this process has all events that are in the log now."""
        log = await self._supervisor.store.log(session)
        await self._supervisor.wait_for_state(log, await log.head(), FOLD)
        return _summary(await self._call("GET", f"/api/sessions/{log.id}"))

    async def _call(self, method: str, path: str, **rest: Any) -> dict[str, Any]:
        answer = await self._client.request(method, path, **rest)
        body: dict[str, Any] = answer.json()
        if answer.is_error:
            raise RefusedError(str(body.get("error") or f"HTTP {answer.status_code}"))
        return body


@asynccontextmanager
async def session_tools(data: Path) -> AsyncGenerator[SessionTools]:
    """Run the sessions of a data folder in this process, and return the tools for them. Raises LogError."""
    app = application(data, None, frozenset({"localhost"}))
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost", timeout=None) as client,
    ):
        yield SessionTools(client, app.state.supervisor)


def mcp_server(tools: SessionTools) -> MCPServer:
    """Return the MCP server of these tools. Raises HandiworkError if the library is missing."""
    try:
        from mcp.server import MCPServer
    except ImportError:
        raise RefusedError(MISSING) from None
    server = MCPServer("handiwork", instructions=INSTRUCTIONS, log_level="ERROR")
    named: dict[str, Tool] = {
        "start": tools.start,
        "follow": tools.follow,
        "answer": tools.answer,
        "interrupt": tools.interrupt,
        "diff": tools.diff,
        "apply": tools.apply,
        "list": tools.list_sessions,
    }
    for name, tool in named.items():
        server.tool(name)(_explained(tool))
    return server


def _explained(tool: Tool) -> Tool:
    """Return the tool with errors whose text the caller gets; the library hides that of others."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(tool)
    async def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return await tool(*args, **kwargs)
        except (HandiworkError, OSError) as error:
            raise ToolError(str(error)) from error

    return call


async def serve_stdio(data: Path) -> None:
    """Serve on stdin and stdout until stdin closes. Sessions that still run resume with the next server."""
    async with session_tools(data) as tools:
        await mcp_server(tools).run_stdio_async()


def serve_http(data: Path, port: int, say: Callable[[str], None]) -> None:
    """Serve streamable HTTP on the loopback, with the data folder's token, until a signal arrives.

    Raises SettingsError if the port is taken, HandiworkError if the library is missing, LogError.
    """
    token, listener = token_of(data), bind(HOST, port)
    port = int(listener.getsockname()[1])
    running: list[ASGIApp] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with session_tools(data) as tools:
            server = mcp_server(tools)
            running.append(server.streamable_http_app())
            async with server.session_manager.run():
                yield

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await running[0](scope, receive, send)

    guard = Middleware(AccessGuard, token=token, names=names_of(HOST), cookie=f"handiwork-mcp-{port}")
    app = Starlette(routes=[Mount("/", serve)], middleware=[guard], lifespan=lifespan)
    link = f"http://{HOST}:{port}/mcp"
    run_server(app, listener, lambda: say(f"{link} with the header Authorization: Bearer {token}"), ws="none")


def _summary(view: dict[str, Any]) -> dict[str, Any]:
    """Return a session's view as other programs need it."""
    asked = [
        {"action": each["action"]["id"], "text": _text(from_dict(each["action"])), "why": each["why"]}
        | {"rule": each["rule"]}
        for each in view["asked"]
    ]
    names = ("title", "agent", "model", "workspace", "why", "iterations", "outputs")
    known = {"session": view["id"], "state": _state(view), **{name: view[name] for name in names}}
    return {**known, "cost": view["cost"]["usd"], "asked": asked}


def _state(row: dict[str, Any]) -> str:
    return "interrupted" if row["interrupted"] else row["state"]


def _line(event: Event) -> dict[str, Any] | None:
    """Return an event for a program, None for one that it need not see."""
    if not isinstance(event, Action | Observation):
        return None
    return {"id": event.id, "type": event.kind, "source": event.source, "text": _text(event)}


def _text(event: Event) -> str:
    if isinstance(event, Observation):
        return shorten(event.text, TEXT)
    if not isinstance(event, Action):
        return ""
    verb, object_, _ = describe(event)
    return shorten(f"{event.thought}\n{verb} {object_}".strip(), TEXT)
