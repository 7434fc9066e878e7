"""A server for tests and measurements, in this process or as ``handiwork serve`` in its own, and its client."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from handiwork.server.access import names_of
from handiwork.server.api.evaluation import FollowedRun
from handiwork.server.app import application

PATIENCE = 60.0
"""Seconds to wait for what must come."""

TOKEN = "the-token-of-the-tests"  # noqa: S105 - of servers that end with their test
HANDIWORK = Path(sys.executable).with_name("handiwork")


def bash(command: str, said: str = "", **more: Any) -> dict[str, Any]:
    return {"content": said, "tool_calls": [{"name": "bash", "arguments": {"command": command}}], **more}


def finish(message: str = "Done.") -> dict[str, Any]:
    return {"tool_calls": [{"name": "finish", "arguments": {"message": message}}]}


def until(found: Callable[[], Any], what: str = "it") -> Any:
    """Return what ``found`` gives once that is true."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := found()):
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.02)
    return answer


class Api:
    """A client of the server at ``url``, whose ``folder`` is for scripts and workspaces."""

    def __init__(self, url: str, folder: Path, token: str = TOKEN) -> None:
        self.url, self.folder, self.token = url, folder, token
        self.http = httpx2.Client(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=PATIENCE)
        self.bare = httpx2.Client(base_url=url, timeout=PATIENCE)
        self.workspace = folder / "project"
        self.workspace.mkdir(exist_ok=True)
        (self.workspace / "greeting.txt").write_text("hello\n")

    def close(self) -> None:
        self.http.close()
        self.bare.close()

    def script(self, *replies: dict[str, Any]) -> str:
        """Return the name of a model that gives these replies."""
        file = self.folder / f"script-{time.monotonic_ns()}.jsonl"
        file.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
        return f"scripted:{file}"

    def get(self, path: str, **query: Any) -> Any:
        return self._checked(self.http.get(path, params=query)).json()

    def post(self, path: str, **body: Any) -> Any:
        answer = self.http.post(path, json=body) if body else self.http.post(path)
        return self._checked(answer).json()

    def _checked(self, answer: httpx2.Response) -> httpx2.Response:
        assert answer.status_code < 300, (answer.status_code, answer.text)
        return answer

    def create(self, *replies: dict[str, Any], task: str = "greet the world", **more: Any) -> str:
        """Begin a session and return where it is."""
        body = {"task": task, "workspace": str(self.workspace), "model": self.script(*replies), **more}
        return f"/api/sessions/{self.post('/api/sessions', **body)['id']}"

    def until(self, session: str, *states: str) -> dict[str, Any]:
        """Return the session once it is in one of the states."""

        def there() -> Any:
            found = self.get(session)
            return found if found["state"] in states else None

        return until(there, f"{session}: {states}")

    def events(self, session: str, **query: Any) -> list[dict[str, Any]]:
        return self.get(f"{session}/events", limit=1000, **query)["events"]

    def types(self, session: str) -> list[str]:
        return [event["type"] for event in self.events(session)]

    def follow(self, path: str, origin: Origin | None = None) -> ClientConnection:
        """Open a WebSocket."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return connect(self.url.replace("http", "ws", 1) + path, additional_headers=headers, origin=origin)


def next_of(socket: ClientConnection) -> dict[str, Any]:
    """Return the next message."""
    return json.loads(socket.recv(PATIENCE))


def next_event(socket: ClientConnection) -> dict[str, Any]:
    """Return the next event, without the live output and the states before it."""
    while "id" not in (message := next_of(socket)):
        pass
    return message


def events_until(socket: ClientConnection, last: str) -> list[dict[str, Any]]:
    """Return the events up to the first of type ``last``."""
    found: list[dict[str, Any]] = []
    while not found or found[-1]["type"] != last:
        found.append(next_event(socket))
    return found


@contextmanager
def in_this_process(folder: Path, token: str | None = TOKEN, run: FollowedRun | None = None) -> Generator[Api]:
    """Run the server, of sessions or of the rollouts of ``run``, in a thread."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application(folder / "data", token, names_of("127.0.0.1"), run=run),
        ws="websockets-sansio",
        log_level="warning",
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    api = Api(f"http://127.0.0.1:{listening.getsockname()[1]}", folder)
    try:
        until(lambda: server.started, "the server")
        yield api
    finally:
        api.close()
        server.should_exit = True
        thread.join(PATIENCE)


class Program:
    """``handiwork serve`` as a process; ``start`` it again on the same port after it was ended or killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        unwanted = ("HANDIWORK_", "PYTHONDONTWRITEBYTECODE")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
        own = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "HANDIWORK_DATA": str(folder / "data")}
        # Compiled once for all tests, and not into the checkout.
        own["PYTHONPYCACHEPREFIX"] = str(folder.parent / "pycache")
        self.environment = {**kept, **own}
        self.port = 0
        self.process: subprocess.Popen[str] | None = None
        self.apis: list[Api] = []

    def start(self, *flags: str) -> Api:
        command = self.command("serve", "--port", str(self.port), *flags)
        self.process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.link = self.process.stdout.readline().strip()
        url, _, token = self.link.partition("/?token=")
        self.port = int(url.rpartition(":")[2].strip("/"))
        self.apis.append(Api(url, self.folder, token))
        return self.apis[-1]

    def close(self) -> None:
        self.end()
        for api in self.apis:
            api.close()

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(PATIENCE)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def command(self, *arguments: str) -> list[str]:
        return [str(HANDIWORK), *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the program to its end, in the workspace."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder / "project",
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
