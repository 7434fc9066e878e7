"""The local model as its users see it: the real model in a real process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.protocols import BOUND_TEXT, JSON, NATIVE, ReplyProtocol, protocol_of
from handiwork.agents.protocols.ask import read
from handiwork.llm.errors import ModelNotFoundError
from handiwork.llm.local.locks import FileLock
from handiwork.llm.local.model import LocalLLM, server_folder_of
from handiwork.llm.local.server import SLOTS, ServerFolder
from handiwork.llm.local.weights import QWEN_CODER, fetch
from handiwork.llm.types import Grammar, Message, Tool
from handiwork.paths import cache_dir
from tests.llm_local.tiny_gguf import write_gguf

# A model shares the cores with whatever else runs.
pytestmark = pytest.mark.timeout(600)

IDLE = 0.5
"""Seconds that a server outlives its last client here."""
PLAIN = "{% for message in messages %}{{ message.content }}{% endfor %}"
ASK = [Message.text("system", "Answer with one word."), Message.text("user", "What is the capital of France?")]

CITY = {"enum": ["Paris", "Rome"]}
"""A schema, so that a model of random weights answers too."""


@pytest.fixture(scope="module")
def model() -> Path:
    return asyncio.run(fetch(QWEN_CODER, cache_dir() / "models", lambda done, total: None))


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Servers of our own: those of the user's sessions are not seen."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A model of random weights, which loads in no time; what it says is noise, but for the form that it is given."""
    pytest.importorskip("xllamacpp")
    path = tmp_path / "tiny.gguf"
    write_gguf(path, PLAIN)
    return path


@pytest.fixture
async def place(tiny: Path, runtime: None) -> AsyncIterator[ServerFolder]:
    """The folder of the tiny model's server; the test ends when the server has."""
    place = server_folder_of(tiny)
    yield place
    await end_of(place)


@pytest.fixture
async def connect(tiny: Path, place: ServerFolder) -> AsyncIterator[Callable[..., LocalLLM]]:
    """Makes clients of the tiny model, and closes them at the test's end, without which the server would not end."""
    async with clients_of(tiny) as connect:
        yield connect


@pytest.fixture
def tiny_llm(connect: Callable[..., LocalLLM]) -> LocalLLM:
    return connect()


@pytest.fixture(scope="module")
def shared_runtime(model: Path) -> Iterator[str]:
    """A folder where the real model's server, once started, runs until the module's last test is done."""
    with tempfile.TemporaryDirectory() as folder:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", folder)
            place = server_folder_of(model)
        client = FileLock(place.clients_lock, exclusive=False)
        client.acquire()
        yield folder
        client.release()
        asyncio.run(end_of(place))


@pytest.fixture
async def connect_real(
    model: Path, shared_runtime: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., LocalLLM]]:
    """Makes clients of the real model's server, which tests share, and closes them."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", shared_runtime)
    async with clients_of(model) as connect:
        yield connect


@pytest.fixture
def llm(connect_real: Callable[..., LocalLLM]) -> LocalLLM:
    return connect_real()


@asynccontextmanager
async def clients_of(model: Path) -> AsyncGenerator[Callable[..., LocalLLM]]:
    clients: list[LocalLLM] = []

    def connect(said: list[str] | None = None) -> LocalLLM:
        clients.append(client(model, said))
        return clients[-1]

    yield connect
    for llm in clients:
        await llm.close()


def client(model: Path, said: list[str] | None = None) -> LocalLLM:
    return LocalLLM(str(model), status=(said if said is not None else []).append, idle=IDLE)


async def a_city(llm: LocalLLM) -> bool:
    """Whether the model answers a question as it was told to."""
    return json.loads((await llm.complete(ASK, form=CITY)).content) in CITY["enum"]


async def end_of(place: ServerFolder) -> None:
    async with asyncio.timeout(60):
        while place.alive():
            await asyncio.sleep(0.05)


def server_pid(place: ServerFolder) -> int:
    address = place.address()
    assert address is not None
    return address.pid


@pytest.mark.slow
async def test_it_answers_and_costs_nothing(llm: LocalLLM) -> None:
    completion = await llm.complete(ASK)
    assert "Paris" in completion.content
    assert (completion.cost, completion.cost_source) == (0.0, "local")
    assert completion.usage.output > 0


@pytest.mark.slow
async def test_a_schema_is_enforced(llm: LocalLLM) -> None:
    schema = {
        "type": "object",
        "properties": {"mood": {"enum": ["blue", "green"]}, "count": {"enum": [1, 2, 3]}},
        "required": ["mood", "count"],
        "additionalProperties": False,
    }
    completion = await llm.complete([Message.text("user", "Write a poem about the sea.")], form=schema)
    answer = json.loads(completion.content)
    assert answer.keys() == {"mood", "count"}
    assert answer["mood"] in ("blue", "green")


@pytest.mark.slow
@pytest.mark.parametrize("task", ["Write a README with an example in a shell block.", "Count *.py."])
async def test_a_reply_bound_to_the_grammar_of_the_tools_calls_one(llm: LocalLLM, task: str) -> None:
    await llm.open()
    assert protocol_of(llm.capabilities) is BOUND_TEXT
    tools = [tool for tool in TOOLS if tool.name in ("bash", "write", "ipython", "finish")]  # a short prompt is faster
    system = Message.text("system", BOUND_TEXT.instructions(tools, compact=True))
    _, form = BOUND_TEXT.request(tools)
    completion = await llm.complete([system, Message.text("user", task)], form=form)
    (action,) = read(BOUND_TEXT, completion, tools)
    assert action.thought


@pytest.mark.slow
async def test_a_repeated_prefix_is_read_from_the_cache(tiny_llm: LocalLLM) -> None:
    system = Message.text("system", "You know these numbers: " + " ".join(map(str, range(40))))
    first = await tiny_llm.complete([system, Message.text("user", "Which is the first? Only the number.")], form=CITY)
    again = await tiny_llm.complete(
        [system, Message.text("user", "And which is the last? Only the number.")], form=CITY
    )
    assert first.usage.cache_read == 0
    assert again.usage.cache_read > again.usage.input


@pytest.mark.slow
async def test_after_a_cut_answer_the_conversation_is_read_from_the_cache(llm: LocalLLM) -> None:
    """A grammar makes the model repeat itself."""
    read = Message.text("user", "\n".join(f"The square of {n} is {n * n}." for n in range(60)))
    cut = await llm.complete([read, Message.text("user", "Repeat.")], form=Grammar('root ::= "no\\n"{400}'))
    assert cut.finish_reason == "length"
    again = await llm.complete([read, Message.text("user", "Answer yes or no.")], form=Grammar('root ::= "yes" | "no"'))
    assert again.usage.cache_read > 500


async def test_starters_at_the_same_time_share_one_server(
    connect: Callable[..., LocalLLM], place: ServerFolder
) -> None:
    said: list[str] = []
    clients = [connect(said) for _ in range(3)]
    await asyncio.gather(*(llm.start() for llm in clients))
    pid = server_pid(place)
    await asyncio.gather(*(llm.complete(ASK, form=CITY) for llm in clients))
    assert server_pid(place) == pid
    assert sum(line.startswith("loading the model") for line in said) == 1


@pytest.mark.slow
async def test_the_server_wants_a_key_that_only_the_user_can_read(model: Path, llm: LocalLLM) -> None:
    await llm.start()
    place = server_folder_of(model)
    address = place.address()
    assert address is not None
    assert address.url.startswith("http://127.0.0.1:")
    async with httpx2.AsyncClient() as stranger:
        answer = await stranger.post(f"{address.url}/v1/chat/completions", json={"messages": []})
    assert answer.status_code == 401
    assert stat.S_IMODE((place.folder / "endpoint.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700


@pytest.mark.slow
async def test_it_ends_after_its_last_client_and_a_new_call_starts_another(
    connect: Callable[..., LocalLLM], place: ServerFolder
) -> None:
    one, other = connect(), connect()
    assert await a_city(one)
    await other.start()
    pid = server_pid(place)
    await one.close()
    # Longer than it outlives its last client, of which one is left.
    await asyncio.sleep(2 * IDLE)
    assert server_pid(place) == pid
    await other.close()
    await end_of(place)
    assert place.address() is None
    assert await a_city(one)
    assert server_pid(place) != pid


HOLD = """
import asyncio, sys
from handiwork.llm.local.model import LocalLLM
async def hold():
    await LocalLLM(sys.argv[1], idle=float(sys.argv[2])).start()
    print("ready", flush=True)
    await asyncio.Event().wait()
asyncio.run(hold())
"""


@pytest.mark.slow
async def test_it_outlives_the_client_that_started_it_and_forgets_killed_clients(
    tiny: Path, connect: Callable[..., LocalLLM], place: ServerFolder
) -> None:
    command = [sys.executable, "-c", HOLD, str(tiny), str(IDLE)]
    holder = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"ready\n"
    pid = server_pid(place)
    llm = connect()
    assert await a_city(llm)
    holder.send_signal(signal.SIGKILL)
    await holder.communicate()
    assert await a_city(llm)
    assert server_pid(place) == pid
    await llm.close()
    await end_of(place)


@pytest.mark.slow
async def test_a_killed_server_is_started_again_by_the_next_call(tiny_llm: LocalLLM, place: ServerFolder) -> None:
    assert await a_city(tiny_llm)
    killed = server_pid(place)
    os.kill(killed, signal.SIGKILL)
    await end_of(place)
    assert await a_city(tiny_llm)
    assert server_pid(place) != killed


@pytest.mark.slow
async def test_who_has_to_wait_is_told(connect_real: Callable[..., LocalLLM]) -> None:
    said: list[str] = []
    *callers, last = (connect_real(said) for _ in range(SLOTS + 1))
    long = [Message.text("user", "Count from one to a hundred in words.")]
    busy = [asyncio.Event() for _ in callers]
    await last.start()
    calls = [
        asyncio.create_task(llm.complete(long, on_delta=lambda _, begun=begun: begun.set()))
        for llm, begun in zip(callers, busy, strict=True)
    ]
    for begun in busy:
        await begun.wait()
    waiting = asyncio.create_task(last.complete(ASK))
    while "waiting for the local model: it is busy with other calls" not in said:
        assert not waiting.done()
        await asyncio.sleep(0.05)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert "Paris" in (await waiting).content


@pytest.mark.slow
async def test_a_call_can_be_cancelled(llm: LocalLLM) -> None:
    begun = asyncio.Event()
    long = [Message.text("user", "Count from one to a hundred in words.")]
    call = asyncio.create_task(llm.complete(long, on_delta=lambda _: begun.set()))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert "Paris" in (await llm.complete(ASK)).content


@pytest.mark.slow
async def test_a_server_killed_in_mid_answer_costs_one_attempt(model: Path, llm: LocalLLM) -> None:
    await llm.start()
    killed = server_pid(server_folder_of(model))
    pieces: list[str] = []

    def kill_at_first_piece(piece: str) -> None:
        if not pieces:
            os.kill(killed, signal.SIGKILL)
        pieces.append(piece)

    ask = [Message.text("user", "Count from one to ten in words.")]
    completion = await llm.complete(ask, on_delta=kill_at_first_piece)
    assert "ten" in completion.content.lower()
    assert len(completion.failed_attempts) == 1


TOOL = Tool("run", "Run it.", {"type": "object", "properties": {}})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "protocol"), [("{% if tools %}{{ tools | tojson }}{% endif %}" + PLAIN, NATIVE), (PLAIN, JSON)]
)
async def test_the_chat_template_of_a_file_decides_whether_it_gets_native_calls(
    runtime: None, tmp_path: Path, template: str, protocol: ReplyProtocol
) -> None:
    pytest.importorskip("xllamacpp")
    path = tmp_path / "tiny.gguf"
    write_gguf(path, template)
    llm = client(path)
    await llm.open()
    assert protocol_of(llm.capabilities) is protocol
    completion = await llm.complete([Message.text("user", "go")], [TOOL] if protocol is NATIVE else ())
    assert completion.usage.input > (100 if protocol is NATIVE else 0)  # the template has written the tool
    await llm.close()
    await end_of(server_folder_of(path))


async def test_a_file_that_is_no_model_is_one_clear_error(runtime: None, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"not a model" * 100)
    llm = client(path)
    with pytest.raises(ModelNotFoundError, match=r"broken\.gguf did not start: .*failed to load model.*log\.txt"):
        await llm.complete(ASK)
    await llm.close()


async def test_a_folder_that_others_can_enter_is_refused(runtime: None, tmp_path: Path) -> None:
    path = tmp_path / "some.gguf"
    path.touch()
    folder = server_folder_of(path).folder
    folder.chmod(0o755)
    with pytest.raises(ModelNotFoundError, match="open to other users"):
        server_folder_of(path)
