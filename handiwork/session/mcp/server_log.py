"""The log of an MCP server: its stderr and the messages that it asks to log, in a file of the session's folder."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from handiwork.log.redaction.redactor import Redactor

if TYPE_CHECKING:
    import mcp_types as types

LIMIT = 256 << 10
"""Characters of a file; the next one begins then, and the one before the last is dropped."""

_FOLDER, _LATEST, _EARLIER = "mcp", ".log", ".log.1"


class ServerLog:
    """Appends to the log of one server, without secrets. A full disk loses the log and does not fail the session."""

    def __init__(self, session_folder: Path, server: str, redactor: Redactor) -> None:
        self._folder, self._server = session_folder / _FOLDER, server
        self._pieces = redactor.pieces()
        self._at_line_start = True

    def begin(self) -> None:
        """Record a start of the server."""
        self._line(f"--- started at {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")

    def write(self, text: str) -> None:
        """Append a piece of the server's stderr."""
        if text:
            self._at_line_start = text.endswith("\n")
            self._append(self._pieces.feed(text))

    async def message(self, params: types.LoggingMessageNotificationParams) -> None:
        """Append a message that the server asks to log."""
        text = params.data if isinstance(params.data, str) else json.dumps(params.data, ensure_ascii=False)
        logger = f" {params.logger}" if params.logger else ""
        self._line(f"[{params.level}{logger}] {text}")

    def end(self) -> None:
        """Append the text that was held back because it could have been the beginning of a secret."""
        self._append(self._pieces.end())

    def _line(self, text: str) -> None:
        self.write(f"{text}\n" if self._at_line_start else f"\n{text}\n")

    def _append(self, text: str) -> None:
        if not text:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            latest = self._folder / f"{self._server}{_LATEST}"
            if latest.exists() and latest.stat().st_size + len(text) > LIMIT:
                latest.replace(self._folder / f"{self._server}{_EARLIER}")
            with latest.open("a", encoding="utf-8", errors="replace") as file:
                file.write(text[-LIMIT:])


def read_log(session_folder: Path, server: str) -> str:
    """Return the end of a server's log, "" if there is none."""
    files = [session_folder / _FOLDER / f"{server}{suffix}" for suffix in (_EARLIER, _LATEST)]
    return "".join(file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file())


def logged_servers(session_folder: Path) -> list[str]:
    """Return the names of the servers that have a log in the session."""
    return sorted(file.name.removesuffix(_LATEST) for file in (session_folder / _FOLDER).glob(f"*{_LATEST}"))
