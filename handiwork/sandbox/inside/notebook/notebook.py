"""The notebook: Python cells that share their variables, in an IPython that is restarted if they end it."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..children import Children
from ..errors import ActionError
from ..output import Keep, Output, Spools, Text
from ..shell.shell import NO_SECRETS, OnOutput, Status
from .json_lines import Json
from .zygote import Kernel, Zygote

_IDLE_LIMIT = 256 * 1024  # bytes kept of the output between cells
_GRACE = 0.6  # seconds in which an interrupted cell must end
_LEAVE_GRACE = 1.0  # seconds in which the kernel must end after exit()
_MOST_PICTURES = 16  # of one observation: the platform takes no more


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture shown by a cell; ``spool`` is the id of its file."""

    spool: str
    media_type: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell's result so far.

    ``error`` is the name of the exception it raised and ``directory`` the kernel's directory after it; both are None
    while it runs, and if the kernel ended.
    """

    status: Status
    error: str | None
    directory: str | None
    text: Text
    pictures: tuple[Picture, ...]


class Notebook:
    """Runs cells, one call of ``run`` at a time. No process is started before the first cell.

    A cell without a timeout of its own is left running after ``soft_timeout`` seconds. If the kernel ends, by a crash,
    ``exit()`` or because a cell could not be interrupted, the text says so and the next cell gets a new one. The text
    names the Python only if a module is not found, to keep it out of other outputs. Kernels that start later have
    ``own_skills``, in the form that kernel.py tells. ``on_question`` receives the questions of skills to the session's
    model while somebody waits for the cell: {"question": N, "prompt": TEXT, "media": {"spool", "media_type"}}.
    """

    def __init__(
        self,
        workspace: str,
        spools: Spools,
        environment: Mapping[str, str],
        children: Children,
        soft_timeout: float,
    ) -> None:
        self._workspace = workspace
        self._spools = spools
        self._environment = environment
        self._children = children
        self._soft_timeout = soft_timeout
        self.own_skills: list[Json] = []
        self.on_question: Callable[[Json], None] | None = None
        self._questions: set[int] = set()
        self._zygote: Zygote | None = None
        self._kernel: Kernel | None = None
        self._output = Output(spools)
        self._pictures: list[Picture] = []
        self._on_output: OnOutput | None = None
        self._running = False
        self._waited_for = False
        self._started, self._over = asyncio.Event(), asyncio.Event()
        self._stopping: Status | None = None
        self._outcome: tuple[Status, str | None, str | None] | None = None

    async def run(
        self,
        code: str,
        directory: str,
        keep: Keep,
        timeout: float | None,
        on_output: OnOutput,
        secrets: Mapping[str, str] = NO_SECRETS,
    ) -> Cell:
        """Run ``code`` in ``directory``; it is stopped after ``timeout`` seconds.

        ``secrets`` are environment variables until it ends. Without any code, wait for the running cell. Raises
        ActionError if a cell runs already, or none can run.
        """
        self._waited_for = True
        try:
            if code.strip() or not (self._running or self._outcome):
                await self._begin(json.dumps({"code": code, "directory": directory, "secrets": dict(secrets)}).encode())
            return await self._result(keep, timeout, on_output)
        finally:
            self._waited_for = False

    async def interrupt(self) -> bool:
        """Stop the cell that a caller waits for, by force if needed; return False if there is none."""
        if not (self._waited_for and self._running):
            return False
        await self._started.wait()
        await self._stop("interrupted")
        return True

    def close(self) -> None:
        """Kill the kernel and all processes that its cells started."""
        if self._kernel is not None:
            self._kernel.close()
        if self._zygote is not None:
            self._zygote.close()
        self._output.discard()

    def on_output(self, data: bytes) -> None:
        """Handle output of the kernel, or of a process that a cell started."""
        if not self._running:
            data = data[: max(0, _IDLE_LIMIT - self._output.size)]
        self._output.feed(data)
        if self._on_output is not None:
            self._on_output(data)

    def on_message(self, message: Json) -> None:
        """Handle a picture, or the end of the cell."""
        match message:
            case {"image": str(image), "media_type": str(media_type)}:
                self._add_picture(image, media_type)
            case {"question": int(number), "prompt": str(prompt), "data": str(data), "media_type": str(media_type)}:
                self._ask(number, prompt, data, media_type)
            case {"done": True, "leaving": True} if self._kernel is not None:
                kernel = self._kernel
                asyncio.get_running_loop().call_later(_LEAVE_GRACE, kernel.signal, signal.SIGKILL)
            case {"done": True, "error": str() | None as error, "directory": str() | None as directory}:
                self._finish(self._stopping or "done", error, directory)
            case _:
                pass

    def answer(self, number: int, text: str, problem: str) -> None:
        """Answer a question of the running cell; the answer to a closed question is ignored."""
        if number in self._questions and self._kernel is not None:
            self._questions.remove(number)
            self._kernel.run(json.dumps({"question": number, "text": text, "problem": problem}).encode() + b"\n")

    def end_questions(self) -> None:
        """Answer the open questions with a problem: the caller no longer waits for the cell."""
        for number in list(self._questions):
            self.answer(number, "", "nobody waits for the cell any more: run it again, with a longer timeout")

    def _ask(self, number: int, prompt: str, data: str, media_type: str) -> None:
        self._questions.add(number)
        if self.on_question is None:
            self.end_questions()
            return
        spool = self._spools.new()
        try:
            self._spools.path(spool).write_bytes(base64.b64decode(data))
        except (OSError, binascii.Error) as error:
            self.answer(number, "", f"it cannot be sent to the model: {error}")
            return
        self.on_question({"question": number, "prompt": prompt, "media": {"spool": spool, "media_type": media_type}})

    def on_exit(self, code: int) -> None:
        """Handle the end of the kernel."""
        self._kernel = None
        self._questions.clear()
        reason = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        self.on_output(
            b"\n" * bool(self._output.size)
            + f"[The notebook's Python {reason}. All variables are gone; the next cell starts a new one.]\n".encode()
        )
        self._finish(self._stopping or "exited", None, None)

    def _finish(self, status: Status, error: str | None, directory: str | None) -> None:
        if self._running:
            self._running = False
            self._outcome = (status, error, directory)
            self._over.set()

    async def _begin(self, cell: bytes) -> None:
        if self._running:
            raise ActionError(
                "busy",
                "A cell is still running. An empty cell waits for it, and with a timeout stops it when that is over.",
            )
        self._running, self._stopping, self._outcome = True, None, None
        self._started.clear()
        self._over.clear()
        try:
            if self._kernel is None:
                self._kernel = await self._new_kernel()
                if self.own_skills:
                    cell = json.dumps({"skills": self.own_skills}).encode() + b"\n" + cell
            self._kernel.run(cell + b"\n")
        except BaseException:
            self._running = False
            self._over.set()
            raise
        finally:
            self._started.set()

    async def _new_kernel(self) -> Kernel:
        if self._zygote is not None and self._zygote.lost:
            self._zygote.close()
            self._zygote = None
        if self._zygote is None:
            self._zygote = await Zygote.start(self._workspace, self._environment, self._children)
        return await self._zygote.fork(self)

    async def _result(self, keep: Keep, timeout: float | None, on_output: OnOutput) -> Cell:
        if earlier := self._output.start():
            on_output(earlier)
        self._on_output = on_output
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._soft_timeout if timeout is None else timeout):
                    await self._over.wait()
            if timeout is not None:
                await self._stop("timeout")
            if self._stopping is not None:
                await self._over.wait()
        finally:
            self._on_output = None
        status, error, directory = self._outcome or ("running", None, None)
        self._outcome = None
        text, rest = self._output.take(keep, final=not self._running)
        self._output = Output(self._spools)
        self._output.feed(rest)
        pictures, self._pictures = tuple(self._pictures), []
        return Cell(status, error, directory, text, pictures)

    async def _stop(self, reason: Status) -> None:
        """End the cell: interrupt it first, and kill the kernel if it keeps running."""
        if not self._running:
            return
        if self._stopping is None:
            self._stopping = reason
            self._signal(signal.SIGINT)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRACE):
                    await self._over.wait()
            if self._running:
                self._signal(signal.SIGKILL)
        await self._over.wait()

    def _signal(self, number: int) -> None:
        if self._kernel is not None:
            self._kernel.signal(number)

    def _add_picture(self, image: str, media_type: str) -> None:
        if len(self._pictures) == _MOST_PICTURES:  # with those of a cell whose end nobody waited for
            self._output.feed(b"[A picture is left out: one result has %d at most.]\n" % _MOST_PICTURES)
            return
        spool = self._spools.new()
        with contextlib.suppress(OSError, binascii.Error):  # a full disk loses the picture, not the cell
            self._spools.path(spool).write_bytes(base64.b64decode(image))
            self._pictures.append(Picture(spool, media_type))
