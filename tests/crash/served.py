"""A server that is killed while its clients begin sessions, answer questions and send messages."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx2

from tests.crash.bench import FINISH, Bench, bash, handiwork, lines_of, say, sessions, wait
from tests.crash.checks import Told, check_commands, check_events

PATIENCE = 60.0
"""Seconds to wait for what must come."""


def prepare(bench: Bench) -> None:
    bench.empty()
    bench.script(bash("echo one >> tally"), bash("echo two >> tally"), FINISH, bash("echo three >> tally"), FINISH)


def work(bench: Bench) -> int:
    """Serve one client, a process of its own, until it has what it wants."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = os.getpid()
    if os.fork() == 0:
        with suppress(httpx2.HTTPError):  # the server was killed
            _talk(Client(bench, port), server)
            os.kill(server, signal.SIGINT)
        os._exit(0)
    handiwork("serve", "--port", str(port), "--no-token")
    return 0


class Client:
    """A client of the server at a port, which may be about to start."""

    def __init__(self, bench: Bench, port: int) -> None:
        self.bench = bench
        self.http = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE)

    def until(self, found: Callable[[], Any], what: str) -> Any:
        """Return what ``found`` gives once that is true."""
        deadline = time.monotonic() + PATIENCE
        while not (answer := found()):
            assert time.monotonic() < deadline, f"{what} did not come"
            time.sleep(0.02)
        return answer

    def ready(self) -> bool:
        """Tell whether the server answers."""
        try:
            return self.http.get("/api/sessions").status_code == 200
        except httpx2.ConnectError:
            return False

    def get(self, path: str) -> Any:
        return self._checked(self.http.get(path))

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._checked(self.http.post(path, json=body))

    def state(self, session: str, *states: str) -> dict[str, Any]:
        """Return the session once it is in one of the states."""

        def found() -> dict[str, Any] | None:
            view = self.get(f"/api/sessions/{session}")
            return view if view["state"] in states else None

        return self.until(found, f"{session}: {states}")

    def answer(self, session: str, action: int) -> None:
        """Allow what the session asks about."""
        self.post(f"/api/sessions/{session}/approvals", {"action": action, "allowed": True})
        say(session=session, answered=action)

    def finish(self, session: str) -> None:
        """Allow everything until the session is finished."""
        while True:
            view = self.state(session, "finished", "awaiting_user_confirmation", "error", "paused")
            if view["state"] != "awaiting_user_confirmation":
                assert view["state"] == "finished", f"{session}: {view['state']}, {view['why']}"
                return
            for asked in view["asked"]:
                self.answer(session, asked["action"]["id"])

    def _checked(self, answer: httpx2.Response) -> Any:
        assert answer.status_code < 300, (answer.status_code, answer.text)
        return answer.json()


def _talk(client: Client, server: int) -> None:
    bench = client.bench
    client.until(lambda: client.ready() or os.getppid() != server, "the server")
    body = {"task": "the task", "workspace": str(bench.project), "model": f"scripted:{bench.here}/script.jsonl"}
    session = client.post("/api/sessions", {**body, "confirmation": "always"})["id"]
    say(session=session)
    client.finish(session)
    event = client.post(f"/api/sessions/{session}/messages", {"content": "more"})["event"]
    say(session=session, message=event)
    client.finish(session)
    for event in client.get(f"/api/sessions/{session}/events?limit=1000")["events"]:
        say(session=session, id=event["id"], type=event["type"])


def recover(bench: Bench, told: Told) -> None:
    """Start the server again: what it had acknowledged goes on by itself, what was asked is still asked."""
    known = {info.id: check_events(bench.data, info.id, told)[1] for info in wait(sessions(bench.data))}
    begun = {one["session"] for one in told}
    assert begun <= known.keys(), f"sessions {begun - known.keys()} are lost"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = os.fork()
    if server == 0:
        os._exit(handiwork("serve", "--port", str(port), "--no-token"))
    try:
        client = Client(bench, port)
        client.until(client.ready, "the server")
        for session, state in known.items():
            if state.last_id == 0:
                continue
            if asked := set(state.totals.asked):
                view = client.state(session, "awaiting_user_confirmation")
                assert asked <= {one["action"]["id"] for one in view["asked"]}, f"{asked} is not asked any more"
            if session not in begun and state.agent_state == "running":
                client.post(f"/api/sessions/{session}/resume")
            client.finish(session)
    finally:
        os.kill(server, signal.SIGINT)
        os.waitpid(server, 0)
    for session, state in known.items():
        events, _ = check_events(bench.data, session, told)
        kinds = {event.id: event.kind for event in events}
        answered = {getattr(event, "action", None) for event in events if event.kind == "ApprovalEvent"}
        for one in told:
            assert "message" not in one or kinds[one["message"]] == "MessageAction", f"message {one} is lost"
            assert "answered" not in one or one["answered"] in answered, f"answer {one} is lost"
        if state.last_id:
            check_commands(events, lines_of(bench, session, "tally"))
