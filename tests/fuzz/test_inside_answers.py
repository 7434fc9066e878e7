"""Whatever the server inside a sandbox answers, the host gets an observation of the action, or an error it expects.

A server answers from a thread of its own; the client is the real one.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.errors import BrowserError, SandboxError
from handiwork.events.action import (
    BrowseInteractiveAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    JobAction,
)
from handiwork.events.answers import SANDBOX_ERRORS, TEXT_LIMIT
from handiwork.events.base import Action, Observation
from handiwork.events.codec import EVENT_TYPES, from_json, to_json
from handiwork.events.observation import ErrorObservation
from handiwork.sandbox.client import Client
from tests.fuzz.settings import fuzz_seed, fuzz_settings
from tests.sandbox.helpers import Blobs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
EXPECTED = (SandboxError, BrowserError, OSError, FileNotFoundError, IsADirectoryError, PermissionError)
SPOOL = "5" * 32
ACTIONS: list[Action] = [
    *(CmdRunAction(command="x"), IPythonRunCellAction(code="x"), JobAction(operation="list")),
    *(FileReadAction(path="x"), FileWriteAction(path="x", content="y"), FileEditAction(path="x", old="y", new="z")),
    BrowseInteractiveAction(browser_actions="noop()"),
]
VALID: list[dict[str, Any]] = [
    {"type": "CmdOutputObservation", "command": "x", "exit_code": 0, "status": "done", "cwd": "/", "content": "a"},
    {"type": "CmdOutputObservation", "exit_code": None, "content": "a", "tail": "z", "size": 9, "spool": SPOOL},
    {"type": "IPythonRunCellObservation", "code": "x", "error": None, "images": [{"spool": SPOOL, "media_type": "x"}]},
    {"type": "JobObservation", "operation": "list", "job": "", "status": None, "exit_code": None, "content": "a"},
    {"type": "FileReadObservation", "path": "x", "start": 1, "end": 2, "lines": 3, "content": "a", "size": 1},
    {"type": "FileWriteObservation", "path": "x", "created": True},
    {"type": "FileEditObservation", "path": "x", "line": 4, "content": "@@"},
    {"type": "ErrorObservation", "content": "No.", "error_id": "busy"},
    {
        "type": "BrowserOutputObservation",
        "url": "about:blank",
        "title": "t",
        "open_pages": ["a"],
        "active_page": 0,
        "console": ["x"],
        "screenshot": {"spool": SPOOL, "media_type": "image/png"},
    },
]
NAMES = sorted({name for valid in VALID for name in valid} | {"id", "source", "timestamp", "cause", "schema", "limit"})

WORDS = ["", "a", "id", "value", "error", "noop()", "/", "\0", "\ud800", "é\n"]
STRANGE: list[Any] = [
    *("x" * 200_000, ["y" * 90_000] * 3, ["z"] * 500, 1 << 70, "\ud800", "malformed", "AgentFinishAction", SPOOL, {}),
    *(
        None,
        True,
        0,
        -1,
        1.5,
        float("nan"),
        float("-inf"),
        "",
        [],
        [[]],
        [{}],
        [None],
        {"spool": SPOOL},
        [{"spool": 1}],
    ),
]
STATUSES = [b"200", b"302", b"404", b"409", b"500"]


class LyingServer:
    """Answers every request with ``answer``, from a thread."""

    def __init__(self, path: str) -> None:
        self.answer = b""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        self._socket.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Stop."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(1 << 20)
                    connection.sendall(self.answer)
                except OSError:
                    continue


class Bench:
    """A client and its lying server, for all cases of a test."""

    def __init__(self, folder: str) -> None:
        self._server = LyingServer(f"{folder}/s")
        self._client = Client(Path(folder, "s"), Blobs().save, spool_limit=1 << 16, soft_timeout=5.0, grace=5.0)
        self._runner = asyncio.Runner()

    def close(self) -> None:
        """End both."""
        self._runner.run(self._client.close())
        self._runner.close()
        self._server.close()

    def ask(self, answer: bytes, question: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
        """Return what a client gives that is answered so, None for an error that is expected."""

        self._server.answer = answer
        raised: Exception | None = None
        try:
            return self._runner.run(question(self._client))
        except (SandboxError, BrowserError, OSError) as error:
            raised = error
        assert type(raised) in EXPECTED
        assert len(str(raised)) < 3000
        return None


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as folder:
        made = Bench(folder)
        yield made
        made.close()


def check(action: Action, observation: Observation | None) -> None:
    """Fail for an observation that does not answer the action, or is none that the log could keep."""
    if observation is None:
        return
    assert type(action) in type(observation).answers or type(observation) is ErrorObservation
    assert not isinstance(observation, ErrorObservation) or observation.error_id in SANDBOX_ERRORS
    assert (observation.id, observation.source, observation.cause, observation.subtask) == (0, "environment", None, 0)
    text = to_json(observation)
    assert len(text) < 12 * TEXT_LIMIT * 6  # six characters of JSON for one
    assert isinstance(from_json(text), type(observation))


def json_value(chance: random.Random, depth: int = 0) -> Any:
    """Return any JSON value, four levels deep at most."""
    match chance.randrange(7 if depth < 3 else 5):
        case 0:
            return chance.choice([None, True, False])
        case 1:
            return chance.randint(-3, 9) if chance.random() < 0.8 else chance.getrandbits(80)
        case 2:
            return chance.choice([0.5, -1e300, float("nan"), float("inf")])
        case 3:
            return chance.choice(WORDS)
        case 4:
            return "".join(map(chr, chance.choices(range(0x10FFFF), k=chance.randrange(6))))
        case 5:
            return [json_value(chance, depth + 1) for _ in range(chance.randrange(4))]
        case _:
            return {chance.choice(WORDS): json_value(chance, depth + 1) for _ in range(chance.randrange(4))}


def mutated(action: Action, chance: random.Random) -> bytes:
    """Return the lines of an answer, usually to the action, with up to three fields replaced."""
    fitting = [valid for valid in VALID if type(action) in getattr(EVENT_TYPES[valid["type"]], "answers", ())]
    observation = dict(chance.choice(fitting if chance.random() < 0.7 else VALID))
    for name in chance.sample(NAMES, chance.randrange(4)):
        observation[name] = chance.choice(STRANGE) if chance.random() < 0.5 else json_value(chance)
    lines: list[dict[str, Any]] = [{"observation": observation}]
    if chance.random() < 0.5:
        lines.insert(0, {"output": chance.choice(WORDS) if chance.random() < 0.8 else json_value(chance)})
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    if chance.randrange(10) == 0:
        place = chance.randrange(len(data) + 1)
        data = data[:place] + chance.randbytes(chance.randrange(9)) + data[place + chance.randrange(9) :]
    return data


@fuzz_seed
@fuzz_settings
@given(st.integers(0, 2**64))
def test_any_bytes_give_an_observation_or_a_sandbox_error(bench: Bench, seed: int) -> None:
    chance = random.Random(seed)
    data = chance.choice([b"", HEAD]) + chance.randbytes(chance.randrange(300))
    action = chance.choice(ACTIONS)
    check(action, bench.ask(data, lambda client: client.execute(action, lambda _: None)))


@fuzz_seed
@fuzz_settings
@given(st.integers(0, 2**64))
def test_any_mutated_answer_gives_an_observation_or_a_sandbox_error(bench: Bench, seed: int) -> None:
    chance = random.Random(seed)
    action = chance.choice(ACTIONS)
    data = HEAD + mutated(action, chance)
    check(action, bench.ask(data, lambda client: client.execute(action, lambda _: None)))


@fuzz_seed
@fuzz_settings
@given(st.integers(0, 2**64))
def test_any_answer_of_the_browser_or_about_a_file_is_a_value_or_an_expected_error(bench: Bench, seed: int) -> None:
    chance = random.Random(seed)
    value, rest = json_value(chance), chance.choice([b"", b"", b"\n", chance.randbytes(20)])
    if chance.random() < 0.5:
        value = {"value": value, "error": value, "error_id": value}
    status = b"HTTP/1.1 %s X\r\nConnection: close\r\n\r\n" % chance.choice(STATUSES)
    answer = status + json.dumps(value).encode() + rest
    bench.ask(answer, lambda client: client.browser("state", {}))
    bench.ask(answer, downloaded)


async def downloaded(client: Client) -> bytes:
    return b"".join([piece async for piece in client.download(".")])
