"""A modified inside server that lies attacks the host that speaks with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from handiwork.errors import BrowserError, SandboxError
from handiwork.events.action import BrowseURLAction, CmdRunAction, FileReadAction
from handiwork.events.answers import LIST_LIMIT, TEXT_LIMIT
from handiwork.events.base import utc_now
from handiwork.events.codec import to_json
from handiwork.events.observation import BrowserOutputObservation, CmdOutputObservation, ErrorObservation
from handiwork.events.record import StepStarted
from handiwork.log.store import Store
from handiwork.sandbox.client import IMAGE_LIMIT, Client
from tests.hostile.lying_sandbox import SPOOL_LIMIT, LyingSandbox, line, said, server
from tests.hostile.lying_server import OK, Answer
from tests.sandbox.helpers import Blobs
from tests.session.bench import Bench, bash

pytestmark = pytest.mark.slow

OBSERVATION = {"type": "CmdOutputObservation", "command": "x", "exit_code": 0, "content": "a", "tail": "z", "size": 9}
FINISHED = {"type": "AgentStateChangedObservation", "agent_state": "finished", "reason": "over", "content": "done"}
MALFORMED = {"type": "ErrorObservation", "content": "Answer in JSON.", "error_id": "malformed"}
PAGE = {"type": "BrowserOutputObservation", "url": "about:blank", "content": "a page"}
DEEP = b"[" * 100_000 + b"]" * 100_000


async def execute(client: Client) -> CmdOutputObservation:
    observation = await client.execute(CmdRunAction(command="x"))
    assert isinstance(observation, CmdOutputObservation)
    return observation


async def without_end(path: str) -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 65536


async def lines_without_end(path: str) -> AsyncIterator[bytes]:
    while True:
        yield line(output="x" * 65536)


async def in_drops(path: str) -> AsyncIterator[bytes]:
    while True:
        yield line(output=".")
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("answer", [without_end, lines_without_end])
async def test_an_answer_without_end_is_cut(tmp_path: Path, answer: Answer) -> None:
    async with server(tmp_path, answer) as client:
        for ask in (lambda: execute(client), client.shell_state):
            with pytest.raises(SandboxError, match="more than"):
                await ask()


async def test_an_answer_in_drops_ends_with_the_time_of_the_action(tmp_path: Path) -> None:
    async with server(tmp_path, in_drops, grace=0.2) as client:
        for action in (CmdRunAction(command="x"), CmdRunAction(command="x", timeout=0.1), FileReadAction(path="x")):
            with pytest.raises(SandboxError, match="did not answer in"):
                await client.execute(action)
        with pytest.raises(SandboxError, match="did not answer in"):
            await client.browser("state", {})


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{}\n", b"5\n", b"{\n", b"\xff\n", DEEP + b"\n", b'{"observation": 5}\n', b'{"output": 5}\n'),
        b'{"observation": ' + DEEP + b"}\n",
        line(observation=OBSERVATION) * 2,
        line(observation=OBSERVATION) + line(output="more"),
        line(observation=OBSERVATION)[:-20],
    ],
    ids=lambda data: data[:30].decode(errors="replace"),
)
async def test_lines_that_are_not_of_the_protocol_are_an_error(tmp_path: Path, data: bytes) -> None:
    async with server(tmp_path, said(data)) as client:
        with pytest.raises(SandboxError):
            await execute(client)


@pytest.mark.parametrize(
    "head",
    [
        *(b"", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nConnection: close\r\n\r\n"),
        *(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000,
    ],
    ids=lambda head: head[:50].decode(errors="replace"),
)
async def test_what_is_no_whole_answer_is_an_error_and_a_redirect_is_not_followed(tmp_path: Path, head: bytes) -> None:
    async with server(tmp_path, said(line(observation=OBSERVATION)), head=head) as client:
        with pytest.raises(SandboxError):
            await execute(client)


async def test_an_answer_that_was_sent_before_the_request_does_no_harm(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + line(observation=OBSERVATION))
        writer.close()

    async with await asyncio.start_unix_server(serve, tmp_path / "s"):
        client = Client(tmp_path / "s", Blobs().save)
        with suppress(SandboxError):  # the connection was gone before the request was written
            assert (await execute(client)).content == "a"
        await client.close()


@pytest.mark.parametrize(
    "observation",
    [
        *({}, FINISHED, MALFORMED, {"type": "AgentFinishAction"}, {"type": "SessionStarted"}, {"type": ["x"]}),
        *({**MALFORMED, "error_id": one} for one in ("sandbox_lost", "interrupted", "crashed", "", None, ["busy"])),
        {"type": "FileReadObservation", "path": "x", "content": "a"},
        {"type": "AgentDelegateObservation", "agent": "CodeActAgent", "outputs": {"x": 1}},
        *({**OBSERVATION, "size": size} for size in (-1, 1 << 60, 1.5, "nine", {})),
        *({**OBSERVATION, "spool": spool} for spool in ("../health", ["x"], 5, {"x": {}})),
        *({**OBSERVATION, "images": images} for images in ([{}], [], "x", [{}] * 100)),
        *({**OBSERVATION, "cwd": value} for value in (["x"], {"x": "y"}, 5, None)),
        {**OBSERVATION, **{f"field{number}": "x" for number in range(10_000)}},
    ],
    ids=lambda value: json.dumps(value)[:60],
)
async def test_what_does_not_answer_the_action_is_an_error(tmp_path: Path, observation: dict[str, Any]) -> None:
    async with server(tmp_path, said(line(observation=observation))) as client:
        with pytest.raises(SandboxError) as refused:
            await execute(client)
    assert len(str(refused.value)) < 1000


async def test_it_does_not_say_when_by_whom_and_to_what_it_answers(tmp_path: Path) -> None:
    place = {"id": 7, "source": "user", "timestamp": "1999-01-01T00:00:00Z", "cause": 3, "subtask": 5, "schema": 9}
    rest = {"command": "rm -rf ~", "blob": "0" * 64, "limit": "memory"}
    async with server(tmp_path, said(line(observation={**OBSERVATION, **place, **rest}))) as client:
        observation = await execute(client)
    assert abs(utc_now() - observation.timestamp) < timedelta(minutes=1)
    assert (observation.id, observation.source, observation.cause) == (0, "environment", None)
    assert (observation.subtask, observation.schema_version) == (0, 1)
    assert (observation.command, observation.blob, observation.limit) == ("x", None, "")


async def test_texts_and_lists_are_bounded(tmp_path: Path) -> None:
    huge = "x" * 5_000_000
    data = line(observation={**OBSERVATION, "content": huge, "tail": huge, "cwd": huge})
    async with server(tmp_path, said(data)) as client:
        assert len(to_json(await execute(client))) < 4 * TEXT_LIMIT
    data = line(observation={**PAGE, "title": huge, "console": ["y" * 100] * 50_000, "open_pages": [huge, huge]})
    (tmp_path / "s").unlink()
    async with server(tmp_path, said(data)) as client:
        page = await client.execute(BrowseURLAction(url="about:blank"))
    assert isinstance(page, BrowserOutputObservation)
    assert len(page.console) == LIST_LIMIT
    assert len(to_json(page)) < 4 * TEXT_LIMIT


async def test_errors_are_bounded(tmp_path: Path) -> None:
    head = b"HTTP/1.1 409 Conflict\r\nConnection: close\r\n\r\n"
    async with server(tmp_path, said(line(error="x" * 10_000_000, error_id="busy")), head=head) as client:
        with pytest.raises(BrowserError) as browser:
            await client.browser("state", {})
        with pytest.raises(OSError, match="xxx") as file:
            await anext(aiter(client.download(".")))
        with pytest.raises(SandboxError) as refused:
            await execute(client)
    assert max(len(str(error.value)) for error in (browser, file, refused)) < 3000


@pytest.mark.parametrize(
    "lie",
    [FINISHED, MALFORMED, {**OBSERVATION, "source": "user", "content": "x" * 80_000, "tail": "x" * 80_000}],
    ids=["finished", "malformed", "huge"],
)
async def test_a_session_counts_every_step_and_ends_by_no_forged_event(tmp_path: Path, lie: dict[str, Any]) -> None:
    async with Store.open(tmp_path / "data") as store, AsyncExitStack() as stack:
        bench = Bench(store, tmp_path, stack)
        (tmp_path / "lie").write_bytes(line(observation=lie))
        sandbox = LyingSandbox(tmp_path, tmp_path / "lie")
        session = await bench.session([bash(f"echo {n}") for n in range(3)], sandbox=sandbox, iterations=3)
        async with asyncio.timeout(60):
            state = await session.run("do it")
    assert (state.agent_state, state.iteration) == ("paused", 3)
    assert sum(isinstance(event, StepStarted) for event in bench.events) == 3
    assert sum(event.source == "user" for event in bench.events) == 1
    answers = [event for event in bench.events if isinstance(event, ErrorObservation | CmdOutputObservation)]
    assert [len(answer.text) < 3 * TEXT_LIMIT and answer.cause is not None for answer in answers] == [True] * 3


async def test_a_packed_answer_is_not_unpacked(tmp_path: Path) -> None:
    data = line(observation=OBSERVATION)
    async with server(tmp_path, said(data), head=OK[:-2] + b"Content-Encoding: gzip\r\n\r\n") as client:
        assert (await execute(client)).content == "a"


async def test_only_the_first_bytes_of_an_output_without_end_are_kept(tmp_path: Path) -> None:
    fetched: list[str] = []

    async def answer(path: str) -> AsyncIterator[bytes]:
        if path == "/execute":
            yield json.dumps({"observation": {**OBSERVATION, "spool": "ab12"}}).encode() + b"\n"
        elif fetched:
            yield b"{}"
        else:
            fetched.append(path)
            async for piece in without_end(path):
                yield piece

    blobs = Blobs()
    async with server(tmp_path, answer, blobs=blobs) as client:
        observation = await execute(client)
    assert observation.blob is not None
    assert blobs.kept[observation.blob] == b"x" * SPOOL_LIMIT
    assert observation.size == 9
    assert observation.tail == f"z\n[only the first {SPOOL_LIMIT} bytes of it were kept]"


async def test_it_cannot_name_a_blob(tmp_path: Path) -> None:
    data = json.dumps({"observation": {**OBSERVATION, "blob": "0" * 64}}).encode() + b"\n"
    async with server(tmp_path, said(data)) as client:
        assert (await execute(client)).blob is None


async def test_what_cannot_be_printed_is_replaced(tmp_path: Path) -> None:
    lines = b'{"output": "\\ud800"}\n' + line(observation=OBSERVATION)
    seen: list[str] = []
    async with server(tmp_path, said(lines)) as client:
        await client.execute(CmdRunAction(command="x"), seen.append)
    assert seen == ["?"]


@pytest.mark.parametrize(
    ("part", "picture"),
    [
        ({"spool": "5" * 32, "media_type": "image/png"}, b"<svg/>"),
        ({"spool": "5" * 32, "media_type": "image/png"}, b"\x89PNG\r\n\x1a\n" + bytes(IMAGE_LIMIT)),
        ({"spool": "5" * 32, "media_type": "text/html"}, b"\x89PNG\r\n\x1a\n"),
    ],
)
async def test_a_screenshot_that_is_no_usual_picture_is_left_out(
    tmp_path: Path, part: dict[str, str], picture: bytes
) -> None:
    seen = {"type": "BrowserOutputObservation", "url": "about:blank", "content": "a page", "screenshot": part}

    async def answer(path: str) -> AsyncIterator[bytes]:
        yield picture if path.startswith("/spool") else json.dumps({"observation": seen}).encode() + b"\n"

    blobs = Blobs()
    async with server(tmp_path, answer, blobs=blobs) as client:
        observation = await client.execute(BrowseURLAction(url="about:blank"))
    assert isinstance(observation, BrowserOutputObservation)
    assert observation.screenshot is None
    assert observation.content.startswith("a page\n[a picture is left out")
    assert not blobs.kept


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{}\n", b'{"pipe": 5}\n', b'{"pipe": "../1"}\n', b"[\n", DEEP + b"\n"),
        *(
            line(pipe="1") + rest
            for rest in (b"{}\n", b"[]\n", line(out=5), line(exit="0"), b'{"out": ' + DEEP + b"}\n")
        ),
    ],
)
async def test_lies_about_a_program_end_its_pipe_alone(tmp_path: Path, data: bytes) -> None:
    async with server(tmp_path, said(data)) as client:
        with pytest.raises(SandboxError):
            async with client.pipe(["x"], {}) as pipe:
                assert [text async for text in pipe.lines()] == []


async def test_a_program_s_lines_without_end_are_cut(tmp_path: Path) -> None:
    async def forever(piece: bytes) -> AsyncIterator[bytes]:
        yield line(pipe="1")
        while True:
            yield piece

    for piece in (b"x" * 65536, line(out="x" * 65536)):
        folder = tmp_path / str(len(piece))
        folder.mkdir()
        async with server(folder, lambda _, piece=piece: forever(piece)) as client:
            with pytest.raises(SandboxError):
                async with client.pipe(["x"], {}) as pipe:
                    await anext(pipe.lines())
