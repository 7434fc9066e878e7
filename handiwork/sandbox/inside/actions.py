"""Executes actions given as JSON objects and returns observations as JSON objects."""

from __future__ import annotations

import asyncio
import codecs
import itertools
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote

from .browser.process import Browser
from .errors import ActionError
from .files.edit import deleted_lines, deleted_passages, edit_file
from .files.files import read_bytes, read_lines, write_bytes
from .notebook.notebook import Notebook
from .output import KEPT, Keep, Output, Spools, Text, decode
from .shell.jobs import Jobs
from .shell.shell import KEYS, OnOutput, Shell
from .syntax.check import first_new_problem
from .syntax.names import new_undefined_names

_COMPARED = 2**24  # bytes of the largest file whose old content a write is compared with
_DELETED = 8000  # bytes of deleted lines that are returned
_MAX_NAMES = 10  # undefined names that are returned

Json = dict[str, object]
Pythons = Callable[[], tuple[tuple[str, ...], ...]]
"""Returns the commands of the project's interpreters, which may be newer than this one."""


class RequestError(Exception):
    """The request does not follow the protocol; the message says why."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of an action with type checks; raises RequestError if a value has the wrong type.

    ``secrets`` are environment variables for this action alone.
    """

    values: Mapping[str, object]
    secrets: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return a required string."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise RequestError(f"The field {name!r} must be a string.")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean, False if it is missing."""
        value = self.values.get(name, False)
        if not isinstance(value, bool):
            raise RequestError(f"The field {name!r} must be true or false.")
        return value

    def line(self, name: str) -> int | None:
        """Return a line number, None if it is missing."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise RequestError(f"The field {name!r} must be a whole number from 1.")
        return value

    def seconds(self, name: str) -> float | None:
        """Return a number of seconds, None if it is missing."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
            raise RequestError(f"The field {name!r} must be a number of seconds above 0.")
        return float(value)


class Actions:
    """The actions of this server, by the names of their types."""

    def __init__(
        self, shell: Shell, notebook: Notebook, jobs: Jobs, browser: Browser, spools: Spools, pythons: Pythons
    ) -> None:
        self._shell = shell
        self._notebook = notebook
        self._jobs = jobs
        self._browser = browser
        self._spools = spools
        self._pythons = pythons
        self._told: dict[str, set[str]] = {}
        """The messages about undefined names of each file, as of its last change."""
        self._performers: dict[str, Callable[[Fields, Keep, OnOutput], Awaitable[Json]]] = {
            "CmdRunAction": self._run,
            "JobAction": self._job,
            "IPythonRunCellAction": self._run_cell,
            "FileReadAction": self._read,
            "FileWriteAction": self._write,
            "FileEditAction": self._edit,
            "HookRunAction": self._run_hook,
            "BrowseURLAction": self._browse,
            "BrowseInteractiveAction": self._browse,
        }

    async def perform(
        self, action: Mapping[str, object], keep: Keep, on_output: OnOutput, secrets: Mapping[str, str]
    ) -> Json:
        """Return the observation of ``action``; its own errors become an ErrorObservation. Raises RequestError."""
        fields = Fields(action, secrets)
        kind = fields.text("type")
        try:
            performer = self._performers.get(kind)
            if performer is None:
                raise ActionError("unsupported", f"This sandbox cannot carry out a {kind}.")
            return await performer(fields, keep, on_output)
        except ActionError as error:
            return {"type": "ErrorObservation", **self._text(str(error), keep), "error_id": error.error_id}

    async def interrupt(self) -> bool:
        """Stop the hook, cell, command or browser's action, by force if needed; return False if none runs."""
        return await self._jobs.interrupt() or await self._interrupt_tool()

    async def _interrupt_tool(self) -> bool:
        return await self._notebook.interrupt() or await self._browser.interrupt() or await self._shell.interrupt()

    async def command_browser(self, name: str, arguments: Json) -> object:
        """Return the value of a browser command, which only the platform can send. Raises ActionError."""
        return await self._browser.command(name, arguments)

    async def _run(self, fields: Fields, keep: Keep, on_output: OnOutput) -> Json:
        command, timeout = fields.text("command"), fields.seconds("timeout")
        if fields.flag("background"):
            return await self._start(fields, keep)
        if fields.flag("is_input"):
            # As the Enter key does: for a program that reads lines, the terminal makes it a line feed.
            keys = KEYS.get(command) or _encode(command) + b"\r"
            result = await self._shell.send(keys, keep, timeout, on_output)
        elif not command.strip() and self._shell.unreported:
            result = await self._shell.wait(keep, timeout, on_output)
        else:
            result = await self._shell.run(_encode(command), keep, timeout, on_output, fields.secrets)
        return {
            "type": "CmdOutputObservation",
            **_append_line(result.text, self._jobs.endings()),
            "command": command,
            "exit_code": result.exit_code,
            "status": result.status,
            "cwd": result.directory,
        }

    async def _start(self, fields: Fields, keep: Keep) -> Json:
        command = fields.text("command")
        if fields.flag("is_input") or not command.strip():
            raise ActionError("bad_command", "Only a command can run in the background.")
        job = await self._jobs.start(_encode(command), fields.seconds("timeout"), keep, fields.secrets)
        return {
            "type": "CmdOutputObservation",
            **_append_line(job.text, self._jobs.endings()),
            "command": command,
            "exit_code": job.exit_code,
            "status": "background" if job.status == "running" else "done",
            "cwd": self._shell.directory,
            "job": job.job,
        }

    async def _job(self, fields: Fields, keep: Keep, on_output: OnOutput) -> Json:
        operation, handle = fields.text("operation"), fields.text("job")
        observation: Json = {"type": "JobObservation", "operation": operation, "job": handle}
        if operation == "list":
            return {**observation, **self._text(self._jobs.list(), keep)}
        if operation not in ("read", "stop"):
            raise RequestError("The field 'operation' must be list, read or stop.")
        job = self._jobs.read(handle, keep) if operation == "read" else await self._jobs.stop(handle, keep)
        return {**observation, **job.text.fields(), "status": job.status, "exit_code": job.exit_code}

    async def _run_hook(self, fields: Fields, keep: Keep, on_output: OnOutput) -> Json:
        command, text = _encode(fields.text("command")), _encode(fields.text("input"), nul=True)
        hook = await self._jobs.run_hook(command, text, self._absolute(fields.text("directory")), keep)
        exit_code = hook.exit_code if hook.status == "done" else None
        return {"type": "HookRunObservation", **hook.text.fields(), "exit_code": exit_code}

    async def _run_cell(self, fields: Fields, keep: Keep, on_output: OnOutput) -> Json:
        code, timeout = fields.text("code"), fields.seconds("timeout")
        _encode(code, nul=True)
        cell = await self._notebook.run(code, self._shell.directory, keep, timeout, on_output, fields.secrets)
        if cell.directory not in (None, self._shell.directory):
            await self._follow(os.fsencode(cell.directory))
        return {
            "type": "IPythonRunCellObservation",
            **cell.text.fields(),
            "code": code,
            "images": [{"spool": picture.spool, "media_type": picture.media_type} for picture in cell.pictures],
            "error": cell.error,
            "status": cell.status,
        }

    async def _follow(self, directory: bytes) -> None:
        """Change the shell's directory to the one a cell changed to, unless a command runs in the shell."""
        if not self._shell.unreported:
            quoted = b"'" + directory.replace(b"'", b"'\\''") + b"'"
            text = (await self._shell.run(b"builtin cd -- " + quoted, Keep(KEPT, KEPT), None, lambda _: None)).text
            self._shell.on_output((text.content + text.tail).encode(errors="replace"))  # output of background jobs
            if text.spool is not None:
                self._spools.delete(text.spool)

    async def _read(self, fields: Fields, keep: Keep, on_output: OnOutput) -> Json:
        path, start, end = fields.text("path"), fields.line("start") or 1, fields.line("end")
        line_range = await asyncio.to_thread(read_lines, self._absolute(path), start, end, keep, self._spools)
        return {
            "type": "FileReadObservation",
            **line_range.text.fields(),
            "path": path,
            "start": line_range.start,
            "end": line_range.end,
            "lines": line_range.lines,
        }

    async def _write(self, fields: Fields, keep: Keep, on_output: OnOutput) -> Json:
        path, content = fields.text("path"), _encode(fields.text("content"), nul=True)
        absolute = self._target(path)

        def write() -> Json:
            before = _previous_content(absolute)
            data = _with_line_ends(content, before or b"")
            unchanged = before == data
            created = not unchanged and write_bytes(absolute, data)
            deleted, lines = deleted_lines(before or b"", data)
            # Whole lines: half a secret would not be found in the log.
            shown = deleted_passages(before or b"", data)
            sizes = itertools.accumulate(map(len, shown))
            first = b"".join(line for line, size in zip(shown, sizes, strict=True) if size <= _DELETED)
            lost = {"lines": lines, "deleted": len(deleted), "deleted_text": decode(first)}
            return {"created": created, "unchanged": unchanged, **lost, **self._faults(absolute, before, data)}

        return {"type": "FileWriteObservation", **self._text("", keep), "path": path, **await asyncio.to_thread(write)}

    async def _edit(self, fields: Fields, keep: Keep, on_output: OnOutput) -> Json:
        path, old, new = fields.text("path"), fields.text("old"), fields.text("new")
        absolute = self._target(path)

        def edit() -> Json:
            made = edit_file(absolute, path, old, new)
            faults = self._faults(absolute, made.before, made.after)
            return {**self._text(made.diff, keep), "line": made.line, **faults}

        return {"type": "FileEditObservation", **await asyncio.to_thread(edit), "path": path}

    def _faults(self, path: str, before: bytes | None, after: bytes) -> Json:
        """Return the first syntax error of a changed file, or else the first new undefined names that it still has."""
        problem = first_new_problem(path, before, after, self._pythons)
        if problem:
            return {"syntax_error": problem, "undefined_names": []}
        names = new_undefined_names(path, before, after, self._told.get(path, ()))
        self._told[path] = {name.message for name in names}
        return {"syntax_error": "", "undefined_names": [str(name) for name in names[:_MAX_NAMES]]}

    async def _browse(self, fields: Fields, keep: Keep, on_output: OnOutput) -> Json:
        """Open a URL or run calls; both return the same kind of observation."""
        view, marks = fields.text("view"), fields.flag("marks")
        if fields.text("type") == "BrowseURLAction":
            url = self._address(fields.text("url"))
            calls, request = f"goto({url!r})", {"do": "goto", "url": url}
        else:
            calls = fields.text("browser_actions")
            request = {"do": "act", "calls": calls}
        observation = await self._browser.act({**request, "view": view}, marks=marks)
        text = observation.pop("text")
        return {
            "type": "BrowserOutputObservation",
            **self._text(text if isinstance(text, str) else "", keep),
            "last_action": calls,
            **observation,
        }

    def _address(self, url: str) -> str:
        """Return the address of a file for its path, which a model may give instead; any other address as it is."""
        path = re.split(r"[?#]", url, maxsplit=1)[0]
        file = os.path.abspath(os.path.join(self._shell.directory, path))
        return f"file://{quote(file)}{url[len(path) :]}" if "://" not in url and os.path.isfile(file) else url

    def _target(self, path: str) -> str:
        """Return the absolute path of a file to write.

        Raises ActionError for a relative path in a hidden folder, or in one outside the workspace: who allowed the edit
        saw only the path.
        """
        absolute = self._absolute(path)
        folder = os.path.relpath(os.path.realpath(self._shell.directory), os.path.realpath(self._shell.workspace))
        if not os.path.isabs(path) and folder != "." and any(part.startswith(".") for part in folder.split("/")):
            here, usual = self._shell.directory, os.path.join(self._shell.workspace, path)
            raise ActionError("not_named", f"The shell is in {here}: write {usual} or, if you mean that, {absolute}.")
        return absolute

    def _absolute(self, path: str) -> str:
        if not path:
            raise ActionError("not_found", "The path is empty.")
        return os.path.join(self._shell.directory, path)

    def _text(self, text: str, keep: Keep) -> dict[str, object]:
        output = Output(self._spools)
        output.feed(text.encode(errors="backslashreplace"))
        return output.take(keep)[0].fields()


def parse_keep(value: object) -> Keep:
    """Return how much of long texts a request wants to keep; raises RequestError."""
    if value is None:
        return Keep()
    if not isinstance(value, dict):
        raise RequestError('"keep" must be an object with "head" and "tail".')
    sizes: list[int] = []
    for name in ("head", "tail"):
        size: object = value.get(name, 8192)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise RequestError(f'"keep" must say in bytes how much of the {name} is kept.')
        sizes.append(min(size, KEPT))
    return Keep(*sizes)


def parse_secrets(value: object) -> dict[str, str]:
    """Return a request's secrets by name; raises RequestError."""
    secrets: object = value or {}
    pairs = cast("dict[object, object]", secrets).items() if isinstance(secrets, dict) else [(None, None)]
    if not all(isinstance(part, str) for pair in pairs for part in pair):
        raise RequestError('"secrets" must be an object of strings.')
    return cast("dict[str, str]", secrets)


def _previous_content(path: str) -> bytes | None:
    """Return the content of the file, None for a new one and one that is too large to compare."""
    try:
        return read_bytes(path) if os.path.getsize(path) <= _COMPARED else None
    except (ActionError, OSError, ValueError):  # the write tells of a path with a NUL
        return None


def _with_line_ends(content: bytes, before: bytes) -> bytes:
    """Return the content with the byte order mark and the line ends of the file before: models write neither."""
    if before.startswith(codecs.BOM_UTF8) and not content.startswith(codecs.BOM_UTF8):
        content = codecs.BOM_UTF8 + content
    if b"\r" in content or b"\r\n" not in before or before.count(b"\r\n") != before.count(b"\n"):
        return content
    return content.replace(b"\n", b"\r\n")


def _append_line(text: Text, line: str) -> dict[str, object]:
    """Return the fields of a text with a line of the server appended, if there is one."""
    fields = text.fields()
    if line:
        last = "tail" if text.spool else "content"
        before = text.tail if text.spool else text.content
        added = line if before.endswith("\n") or not before else f"\n{line}"
        fields |= {last: before + added, "size": text.size + len(added)}
    return fields


def _encode(text: str, *, nul: bool = False) -> bytes:
    if "\0" in text and not nul:
        raise ActionError("bad_text", "The command has a NUL character, which bash cannot take.")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ActionError("bad_text", f"The text has a lone surrogate at character {error.start}.") from error
