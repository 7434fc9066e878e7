"""The host's side of the processes that read blocks: sends files, checks answers, ends those that hang."""

from __future__ import annotations

import json
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from pydantic import TypeAdapter

from handiwork.codeindex.blocks import Block, BlockType, clipped

SECONDS = 30.0
"""Seconds after which the reading of a file is given up."""
ANSWER = 64 << 20
"""Maximum bytes of an answer."""

_FRAME = struct.Struct(">I")
_Fields = tuple[BlockType, int, int, str, str, str, str, str]
_ANSWER = TypeAdapter[list[_Fields] | str](list[_Fields] | str)

Item = TypeVar("Item")
Result = TypeVar("Result")


class IndexedBlock(NamedTuple):
    """A block with the words and the names by which it is found."""

    block: Block
    words: str
    names: str


class UnreadableFileError(Exception):
    """A file has no blocks that can be found: its reader crashed, hung or answered nonsense."""


class ParserProcess:
    """One process that reads blocks; it is started for the first file and again after a crash."""

    def __init__(self, languages: Iterable[str], seconds: float = SECONDS) -> None:
        self._languages, self._seconds = sorted(languages), seconds
        self._process: subprocess.Popen[bytes] | None = None

    def blocks(self, language: str, text: str) -> list[IndexedBlock]:
        """Return the blocks of a file. Raises UnreadableFileError."""
        process = self._process or self._start()
        timer = threading.Timer(self._seconds, process.kill)
        timer.start()
        try:
            answer = _exchange(process, json.dumps([language, text]).encode())
        except (OSError, struct.error, ValueError) as error:
            hung = not timer.is_alive()
            self.close()
            problem = f"it takes more than {self._seconds:g} s" if hung else "its reader crashed"
            raise UnreadableFileError(problem) from error
        finally:
            timer.cancel()
        if isinstance(answer, str):
            memory = answer == "MemoryError"
            raise UnreadableFileError("it takes too much memory" if memory else f"its reader failed: {answer[:40]}")
        lines = text.count("\n") + 1
        return [IndexedBlock(clipped(Block(*fields[:6]), lines), *fields[6:]) for fields in answer]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-m", "handiwork.codeindex.worker", *self._languages]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, cwd="/"
        )
        return self._process


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> list[_Fields] | str:
    """Return the answer, which hostile code may have written. Raises OSError, struct.error, ValueError."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(_FRAME.pack(len(request)) + request)
    process.stdin.flush()
    (size,) = _FRAME.unpack(process.stdout.read(_FRAME.size))
    if size > ANSWER:
        raise ValueError("the answer is too large")
    return _ANSWER.validate_json(process.stdout.read(size), strict=True)


def map_with_workers(
    work: Callable[[ParserProcess, Item], Result], items: Sequence[Item], languages: Iterable[str], size: int
) -> Generator[Result]:
    """Yield the result of ``work`` for each item as it comes, from ``size`` threads with a worker each.

    Closing the generator ends the workers. Raises the errors of ``work``.
    """
    waiting, stop = iter(items), threading.Event()
    results: queue.Queue[Result | BaseException | None] = queue.Queue(4 * size)
    turn, needed = threading.Lock(), sorted(languages)

    def run() -> None:
        try:
            with ParserProcess(needed) as worker:
                while not stop.is_set():
                    with turn:
                        item = next(waiting, None)
                    if item is None:
                        break
                    results.put(work(worker, item))
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            results.put(error)
        finally:
            results.put(None)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(size)]
    for thread in threads:
        thread.start()
    running = size
    try:
        while running:
            result = results.get()
            if result is None:
                running -= 1
            elif isinstance(result, BaseException):
                raise result
            else:
                yield result
    finally:
        stop.set()
        while running:
            running -= results.get() is None
        for thread in threads:
            thread.join()
