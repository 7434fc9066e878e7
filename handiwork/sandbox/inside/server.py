"""The control protocol as an ASGI application: health, actions, interrupts, files."""

from __future__ import annotations

import asyncio
import codecs
import os
import tempfile
import time
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

from .actions import Actions, Json, RequestError, parse_keep, parse_secrets
from .asgi import (
    BYTES,
    Receive,
    Scope,
    Send,
    begin,
    chunks,
    json_line,
    json_object,
    read_body,
    respond,
    run_while_connected,
    send_file,
    wait_for_disconnect,
)
from .browser.process import Browser
from .children import Children
from .errors import ActionError
from .files.files import action_errors, replacing
from .forward import Forwarder
from .notebook.notebook import Notebook
from .notebook.zygote import python_commands
from .output import Keep, Spools, write_all
from .pipes import Pipes
from .shell.jobs import Jobs
from .shell.shell import Shell
from .shell.terminal import is_below
from .streams.routes import StreamRoutes

_INTERVAL = 0.02  # seconds between lines
_LIMIT = 1 << 20  # bytes of one action's output that are streamed


class _OutputStream:
    """Turns bytes into {"output": text} lines for ``send``; ``pump`` must run while bytes are fed."""

    def __init__(self, send: Callable[[bytes, bool], Awaitable[None]]) -> None:
        self._send = send
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._pending = bytearray()
        self._said = bytearray()
        self._remaining = _LIMIT
        self._arrived = asyncio.Event()
        self._sending = asyncio.Lock()

    def feed(self, data: bytes) -> None:
        """Add bytes; those over the limit are dropped."""
        data = data[: self._remaining]
        if data:
            self._remaining -= len(data)
            self._pending += data
            self._arrived.set()

    def say(self, line: Json) -> None:
        """Add a line of another kind, after all output so far."""
        self._said += json_line(line)
        self._arrived.set()

    async def pump(self) -> None:
        """Send output as it arrives, until cancelled."""
        while True:
            await self._arrived.wait()
            await asyncio.sleep(_INTERVAL)
            async with self._sending:
                if line := self._take(final=False):
                    await self._send(line, False)

    async def finish(self, last: Json) -> None:
        """Send the rest of the output and ``last``, which ends the stream."""
        async with self._sending:
            await self._send(self._take(final=True) + json_line(last), True)

    def _take(self, *, final: bool) -> bytes:
        self._arrived.clear()
        text = self._decoder.decode(bytes(self._pending), final)
        self._pending.clear()
        said = bytes(self._said)
        self._said.clear()
        return (json_line({"output": text}) if text else b"") + said


class App:
    """One sandbox's server: one shell, one action at a time. The ASGI server must send lifespan events.

    ``state`` is the result of another shell's ``Shell.saved_state``; this server's shell starts from it.
    """

    def __init__(
        self,
        workspace: str,
        environment: Mapping[str, str],
        soft_timeout: float,
        forwarder: Forwarder | None = None,
        *,
        bashrc: bool,
        state: bytes = b"",
    ) -> None:
        self._workspace = os.path.abspath(workspace)
        self._bashrc = bashrc
        self._state = state
        self._environment = environment
        self._soft_timeout = soft_timeout
        self._forwarder = forwarder
        self._on_host = "HANDIWORK_INSIDE_LIBRARIES" in os.environ
        self._started = time.monotonic()
        self._turn = asyncio.Lock()
        self._current: asyncio.Task[Any] | None = None
        self._routes: dict[tuple[str, str], Callable[[Scope, Receive, Send], Awaitable[None]]] = {
            ("GET", "health"): self._health,
            ("POST", "execute"): self._execute,
            ("POST", "browser"): self._command_browser,
            ("POST", "interrupt"): self._interrupt,
            ("GET", "spool"): self._get_spool,
            ("DELETE", "spool"): self._delete_spool,
            ("GET", "files"): self._get_file,
            ("PUT", "files"): self._put_file,
            ("GET", "shell"): self._get_shell,
            ("PUT", "skills"): self._put_skills,
            ("POST", "answer"): self._post_answer,
            ("POST", "pipe"): self._open_pipe,
            ("PUT", "pipe"): self._write_pipe,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI scope."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        name = scope["path"].split("/")[1]
        route = self._routes.get((scope["method"], name))
        try:
            if route is None:
                raise RequestError(f"There is no {scope['method']} {scope['path']} in this protocol.")
            await route(scope, receive, send)
        except RequestError as error:
            await respond(send, 400, {"error": str(error), "error_id": "bad_request"})
        except ActionError as error:
            await respond(send, 404, {"error": str(error), "error_id": error.error_id})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        children = Children()
        with tempfile.TemporaryDirectory(prefix="handiwork-spool-") as directory:
            self._spools = Spools(Path(directory))
            common = (self._workspace, self._spools, self._environment, children, self._soft_timeout)
            self._shell = Shell(*common, bashrc=self._bashrc)
            notebook = self._notebook = Notebook(*common)
            jobs = Jobs(self._shell, self._spools, self._environment, children)
            browser = Browser(self._workspace, self._spools, self._environment, children)
            self._actions = Actions(self._shell, notebook, jobs, browser, self._spools, self._pythons)
            self._pipes = Pipes(self._workspace, self._environment, children)
            own = (self._workspace, self._environment, children, self._forwarder)
            streams = StreamRoutes(*own, bashrc=self._bashrc, on_host=self._on_host)
            self._routes |= streams.routes
            try:
                children.open()
                if self._forwarder is not None:
                    await self._forwarder.open()
                self._shell.open(self._state)
            except (ActionError, OSError) as error:
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
            await receive()
            if self._forwarder is not None:
                self._forwarder.close()
            streams.close()
            self._pipes.close()
            await browser.close()
            jobs.close()
            notebook.close()
            self._shell.close()
            children.close()
        await send({"type": "lifespan.shutdown.complete"})

    def _pythons(self) -> tuple[tuple[str, ...], ...]:
        """Return the interpreters behind the project's, without those that the agent can write.

        There are none on the user's own machine, because a write there runs no program.
        """
        if self._on_host:
            return ()
        written = [os.path.realpath(place) for place in (self._workspace, self._environment.get("HOME")) if place]
        commands = python_commands(self._workspace, self._environment)
        real = dict.fromkeys((os.path.realpath(program), *options) for program, *options in commands)
        return tuple(command for command in real if not any(is_below(command[0], place) for place in written))

    async def _health(self, scope: Scope, receive: Receive, send: Send) -> None:
        uptime = time.monotonic() - self._started
        await respond(send, 200, {"ok": True, "pid": os.getpid(), "uptime": uptime})

    async def _execute(self, scope: Scope, receive: Receive, send: Send) -> None:
        action, keep, secrets = _parse_request(await read_body(receive))
        stream = _OutputStream(chunks(send))
        work = asyncio.create_task(self._perform(action, keep, stream, secrets))
        pump = asyncio.create_task(stream.pump())
        disconnect = asyncio.create_task(wait_for_disconnect(receive))
        try:
            await asyncio.wait({work, disconnect}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await stream.finish({"observation": work.result()})
            else:
                await self._abandon(work)
        finally:
            pump.cancel()
            disconnect.cancel()

    async def _perform(self, action: Json, keep: Keep, stream: _OutputStream, secrets: Mapping[str, str]) -> Json:
        async with self._turn:
            self._current = asyncio.current_task()
            self._notebook.on_question = stream.say
            try:
                return await self._actions.perform(action, keep, stream.feed, secrets)
            finally:
                self._notebook.on_question = None
                self._notebook.end_questions()

    async def _abandon(self, work: asyncio.Task[Json]) -> None:
        """Stop an action whose client has disconnected, and drop its result."""
        if self._current is not work:
            work.cancel()  # it has not started
            return
        await self._actions.interrupt()
        observation = await work
        images = cast("list[Json]", observation.get("images", []))
        pictures = (cast("Json", observation.get(name) or {}) for name in ("screenshot", "marked_screenshot"))
        for spool in (part.get("spool") for part in (observation, *images, *pictures)):
            if isinstance(spool, str):
                self._spools.delete(spool)

    async def _command_browser(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = json_object(await read_body(receive))
        name, arguments = request.get("command"), request.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise RequestError('The body must have the text "command" and the object "arguments".')
        work = asyncio.create_task(self._in_turn(name, cast(Json, arguments)))
        disconnect = asyncio.create_task(wait_for_disconnect(receive))
        try:
            await asyncio.wait({work, disconnect}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
                return
            await respond(send, 200, {"value": work.result()})
        except ActionError as error:
            await respond(send, 409, {"error": str(error), "error_id": error.error_id})
        finally:
            disconnect.cancel()

    async def _in_turn(self, name: str, arguments: Json) -> object:
        async with self._turn:
            return await self._actions.command_browser(name, arguments)

    async def _interrupt(self, scope: Scope, receive: Receive, send: Send) -> None:
        await respond(send, 200, {"interrupted": await self._actions.interrupt()})

    async def _get_spool(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_file(send, str(self._spool_path(scope)))

    async def _delete_spool(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = self._spool_path(scope)
        with action_errors(path.name):
            path.unlink()
        await respond(send, 200, {"deleted": True})

    async def _get_file(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_file(send, self._path(scope))

    async def _put_file(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = self._path(scope)
        size, more = 0, True
        with replacing(path) as file:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestError("The upload was cut.")
                data: bytes = message.get("body", b"")
                size += len(data)
                with action_errors(path):
                    write_all(file, data)
                more = message.get("more_body", False)
        await respond(send, 200, {"size": size})

    async def _get_shell(self, scope: Scope, receive: Receive, send: Send) -> None:
        await begin(send, 200, BYTES)
        await send({"type": "http.response.body", "body": await self._shell.saved_state()})

    async def _put_skills(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Set the user's own skills, which kernels that start from now on have."""
        skills = json_object(await read_body(receive)).get("skills")
        if not isinstance(skills, list):
            raise RequestError('The body must have the list "skills".')
        self._notebook.own_skills = cast("list[Json]", skills)
        await respond(send, 200, {"skills": len(self._notebook.own_skills)})

    async def _post_answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a question of the running cell."""
        match json_object(await read_body(receive)):
            case {"question": int(number), "text": str(text), "problem": str(problem)}:
                self._notebook.answer(number, text, problem)
            case _:
                raise RequestError('The body must have the number "question" and the texts "text" and "problem".')
        await respond(send, 200, {"answered": True})

    async def _open_pipe(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, chunk = json_object(await read_body(receive)), chunks(send)
        await run_while_connected(self._pipes.run(request, lambda line: chunk(json_line(line), False)), receive, chunk)

    async def _write_pipe(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._pipes.write(scope["path"].removeprefix("/pipe/"), await read_body(receive))
        await respond(send, 200, {"written": True})

    def _path(self, scope: Scope) -> str:
        query = urllib.parse.parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        paths = query.get("path", [])
        if len(paths) != 1 or not paths[0]:
            raise RequestError("The query must say path=PATH once.")
        return os.path.join(self._workspace, paths[0])

    def _spool_path(self, scope: Scope) -> Path:
        spool = scope["path"].removeprefix("/spool/")
        with action_errors(spool):
            return self._spools.path(spool)


def _parse_request(body: bytes) -> tuple[Json, Keep, dict[str, str]]:
    request = json_object(body)
    action = request.get("action")
    if not isinstance(action, dict):
        raise RequestError('The body must have the object "action".')
    return cast(Json, action), parse_keep(request.get("keep")), parse_secrets(request.get("secrets"))
