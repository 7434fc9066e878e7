"""The action server shares its world with the agent: whatever it answers, the platform's process is not harmed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from handiwork.events.action import BrowseURLAction, CmdRunAction
from handiwork.events.observation import BrowserOutputObservation, CmdOutputObservation
from handiwork.sandbox.base import SandboxError
from handiwork.sandbox.client import IMAGE_LIMIT, Client
from tests.sandbox.helpers import Blobs

Answer = Callable[[str], AsyncIterator[bytes]]

OBSERVATION = {"type": "CmdOutputObservation", "command": "x", "exit_code": 0, "content": "a", "tail": "z", "size": 9}
LIMIT = 1000


@asynccontextmanager
async def server(folder: Path, answer: Answer, *, head: str = "", blobs: Blobs | None = None) -> AsyncGenerator[Client]:
    """Serve what ``answer`` gives for each path, and give a client."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path = (await reader.readline()).split()[1].decode()
            writer.write(f"HTTP/1.1 200 OK\r\nConnection: close\r\n{head}\r\n".encode())
            async for piece in answer(path):
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            pass  # the client has had enough
        finally:
            writer.close()

    listening = await asyncio.start_unix_server(serve, folder / "s")
    client = Client(folder / "s", (blobs or Blobs()).save, LIMIT)
    async with listening:
        yield client
        await client.close()


def said(data: bytes) -> Answer:
    async def answer(path: str) -> AsyncIterator[bytes]:
        yield data

    return answer


async def execute(client: Client) -> CmdOutputObservation:
    observation = await client.execute(CmdRunAction(command="x"))
    assert isinstance(observation, CmdOutputObservation)
    return observation


async def without_end(path: str) -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 65536


async def lines_without_end(path: str) -> AsyncIterator[bytes]:
    while True:
        yield json.dumps({"output": "x" * 65536}).encode() + b"\n"


@pytest.mark.parametrize("answer", [without_end, lines_without_end])
async def test_an_answer_without_end_is_cut(tmp_path: Path, answer: Answer) -> None:
    async with server(tmp_path, answer) as client:
        with pytest.raises(SandboxError, match="more than"):
            await execute(client)
        with pytest.raises(SandboxError, match="more than"):
            await client.list_files(".")


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{}\n", b"5\n", b"{\n", b"\xff\n", b"[" * 100_000 + b"\n", b'{"observation": 5}\n'),
        *(b'{"observation": {}}\n', b'{"observation": {"type": "AgentFinishAction"}}\n'),
        json.dumps({"observation": {**OBSERVATION, "size": -1}}).encode() + b"\n",
        json.dumps({"observation": {**OBSERVATION, "spool": "../health"}}).encode() + b"\n",
        json.dumps({"observation": {**OBSERVATION, "spool": ["x"]}}).encode() + b"\n",
    ],
)
async def test_what_is_not_of_the_protocol_is_an_error(tmp_path: Path, data: bytes) -> None:
    async with server(tmp_path, said(data)) as client:
        with pytest.raises(SandboxError):
            await execute(client)
        with pytest.raises(SandboxError):
            await client.list_files(".")


async def test_a_packed_answer_is_not_unpacked(tmp_path: Path) -> None:
    line = json.dumps({"observation": OBSERVATION}).encode() + b"\n"
    async with server(tmp_path, said(line), head="Content-Encoding: gzip\r\n") as client:
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
    assert blobs.kept[observation.blob] == b"x" * LIMIT
    assert observation.size == 9
    assert observation.tail == f"z\n[only the first {LIMIT} bytes of it were kept]"


async def test_it_cannot_name_a_blob(tmp_path: Path) -> None:
    line = json.dumps({"observation": {**OBSERVATION, "blob": "0" * 64}}).encode() + b"\n"
    async with server(tmp_path, said(line)) as client:
        assert (await execute(client)).blob is None


async def test_what_cannot_be_printed_is_replaced(tmp_path: Path) -> None:
    lines = b'{"output": "\\ud800"}\n' + json.dumps({"observation": OBSERVATION}).encode() + b"\n"
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
