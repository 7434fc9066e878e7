"""Local models: llama.cpp in a process shared by all sessions, accessed like any OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import httpx2

from handiwork.llm.errors import ModelNotFoundError
from handiwork.llm.local.download_progress import Reporter, to_stderr
from handiwork.llm.local.locks import FileLock, locked
from handiwork.llm.local.server import WINDOW, Address, ServerFolder
from handiwork.llm.local.weights import KNOWN, check_library, file_of, find
from handiwork.llm.openai_compatible.model import ChatLLM, ServerAddress
from handiwork.llm.types import Capabilities, Completion, Message, OnDelta, ReplyForm, Tool
from handiwork.paths import runtime_dir

IDLE = 300.0
"""Seconds after the last client's end until the server ends: a new one reads the prompt of all folders again."""

LONGEST_ANSWER = 2048
"""The most tokens of one answer, so that a model that repeats itself stops."""

Status = Callable[[str], None]
"""Called with a line about a slow step."""


class LocalLLM:
    """A model that runs on this machine; ``model`` is a known name or the path of a GGUF file.

    Raises ModelNotFoundError for any other, and without the library that runs the weights. The first request fetches
    the weights and starts the server; a server that died is restarted. ``status`` is called for slow steps; None means
    standard error. ``idle`` is the number of seconds that the server outlives its last client, if this object starts
    it.
    """

    def __init__(self, model: str, status: Status | None = None, idle: float = IDLE) -> None:
        if model not in KNOWN:
            file_of(model)
        check_library()
        self._model = model
        self._status = status or to_stderr
        self._reporter = Reporter(model, status)
        self._idle = idle
        self._server_folder: ServerFolder | None = None
        self._path = Path()
        self._client: FileLock | None = None
        self._address: Address | None = None
        self._opening = asyncio.Lock()
        self._chat = ChatLLM(
            self.name,
            model,
            self._endpoint,
            capabilities=_declared(model),
            free=True,
            extra={"max_tokens": LONGEST_ANSWER},
            cuts_repetition=True,
            key_name="the server's log",
        )

    @property
    def name(self) -> str:
        """The model string, "local:" and the model."""
        return f"local:{self._model}"

    @property
    def capabilities(self) -> Capabilities:
        """The model's capabilities: native tool calls if its chat template has them and its protocol allows them.

        The window is the server's, which is smaller if the model's own is; it and the template are known after
        ``open``.
        """
        capabilities = self._chat.capabilities
        return capabilities if capabilities.window is not None else replace(capabilities, window=WINDOW)

    async def open(self) -> None:
        """Start the server if needed, and ask it for its window. Raises the same errors as ``complete``."""
        await self.start()
        await self._chat.open()

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        form: ReplyForm | None = None,
        on_delta: OnDelta | None = None,
        temperature: float | None = None,
    ) -> Completion:
        """Return the model's answer, by default at temperature 0; see LLM.complete.

        Raises ModelNotFoundError if the weights or the GGUF file are missing or broken.
        """
        await self.start()
        await self._tell_if_busy()
        return await self._chat.complete(messages, tools, form, on_delta, temperature or 0.0)

    async def start(self) -> None:
        """Fetch the weights and start the server if needed; reconnect if the server is a new one."""
        async with self._opening:
            address = await self._ensure_running()
            if address != self._address:
                await self._chat.close()
                self._address = address

    async def close(self) -> None:
        """Close the connection; the server ends some time after its last client."""
        await self._chat.close()
        if self._client is not None:
            self._client.release()
            self._client = None

    async def _endpoint(self) -> ServerAddress:
        async with self._opening:
            self._address = address = await self._ensure_running()
        return ServerAddress(f"{address.url}/v1", address.key)

    async def _ensure_running(self) -> Address:
        if self._server_folder is None:
            with self._reporter as report:
                self._path = await find(self._model, report)
            self._server_folder = server_folder_of(self._path)
        server = self._server_folder
        if self._client and server.alive() and (address := server.address()):
            return address
        async with locked(server.start_lock):
            if self._client is None:
                self._client = FileLock(server.clients_lock, exclusive=False)
                self._client.acquire()
            if not server.alive():
                await _launch(server, self._path, self._idle)
            return await self._wait_until_ready(server)

    async def _wait_until_ready(self, server: ServerFolder) -> Address:
        if address := server.address():
            return address
        began = time.monotonic()
        self._status(f"loading the model {self._path.name}")
        while server.alive():
            if address := server.address():
                self._status(f"the model is loaded, {time.monotonic() - began:.1f} s")
                return address
            await asyncio.sleep(0.05)
        raise ModelNotFoundError(
            f"The local model {self._path} did not start: {_failure_reason(server)} (log: {server.log})"
        )

    async def _tell_if_busy(self) -> None:
        """Report that the call has to wait if the server is busy with other calls."""
        address = self._address
        if address is None:
            return
        try:
            async with httpx2.AsyncClient(timeout=2, trust_env=False) as client:
                answer = await client.get(f"{address.url}/slots", headers={"Authorization": f"Bearer {address.key}"})
        except httpx2.HTTPError:
            return
        if answer.is_success and all(slot["is_processing"] for slot in answer.json()):
            self._status("waiting for the local model: it is busy with other calls")


def _declared(model: str) -> Capabilities:
    """Return the capabilities of a known model, also of one named by its file; the chat template tells the others'."""
    path = Path(model).expanduser()
    size = path.stat().st_size if model not in KNOWN and path.is_file() else -1
    weights = KNOWN.get(model) or next((weights for weights in KNOWN.values() if weights.size == size), None)
    if weights is None:
        return Capabilities(grammar=True)
    return Capabilities(tools=weights.protocol in ("auto", "native"), grammar=True, protocol=weights.protocol)


def server_folder_of(model: Path) -> ServerFolder:
    """Return the folder of the model's server, created if missing.

    Raises ModelNotFoundError if other users can enter it.
    """
    stat = model.stat()
    identity = f"{model.resolve()}\0{stat.st_size}\0{stat.st_mtime_ns}"
    folder = runtime_dir() / f"llm-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    folder_stat = folder.lstat()
    if folder_stat.st_uid != os.getuid() or folder_stat.st_mode & 0o077:
        raise ModelNotFoundError(
            f"{folder} is open to other users: remove it with the files that they may have put there."
        )
    return ServerFolder(folder)


async def _launch(server: ServerFolder, model: Path, idle: float) -> None:
    with server.log.open("wb") as log:
        launcher = await asyncio.create_subprocess_exec(
            sys.executable,
            # Never from the current directory, which may be an unreviewed project.
            "-P",
            "-m",
            "handiwork.llm.local.server",
            str(server.folder),
            str(model),
            str(idle),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            start_new_session=True,
        )
    await launcher.wait()


def _failure_reason(server: ServerFolder) -> str:
    """Return the log's last error line, else its last line."""
    lines = [line for line in server.log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if " E " in line and "error loading model" in line]
    return (errors or lines or ["it said nothing"])[-1]
