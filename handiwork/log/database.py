"""One connection to the database; all code specific to SQLite is here."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sqlalchemy import Connection, create_engine, event, inspect
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from handiwork.log import schema
from handiwork.log.errors import LogError
from handiwork.log.lists import contents
from handiwork.paths import locked

if TYPE_CHECKING:
    import sqlite3

FILE = "handiwork.db"


def _decode(data: bytes) -> str:
    return data.decode(errors="replace")


def _make_private(data: Path) -> None:
    """Remove other users' access to a data folder created with looser modes; skip files of other owners."""
    logs = (FILE, f"{FILE}-wal", f"{FILE}-shm", "token", "snapshots.lock")
    for path in (data, *(data / name for name in (*logs, "blobs", "sessions", "snapshots"))):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        if status.st_uid == os.geteuid() and status.st_mode & 0o077 and not stat.S_ISLNK(status.st_mode):
            path.chmod(stat.S_IMODE(status.st_mode) & 0o700)


class Database:
    """The SQLite file in the folder ``data``, created if missing; used by one thread only.

    ``patience`` is the number of seconds to wait for another process's transaction. Raises LogError.
    """

    def __init__(self, data: Path, patience: float = 5.0) -> None:
        self.path = data / FILE
        self._begin = "BEGIN"
        self._durable: bool = False
        with self.errors():
            try:
                data.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
                _make_private(data)
            except OSError as error:
                raise self._not_opened(error) from error
            self._engine = create_engine(
                f"sqlite:///{self.path}",
                poolclass=NullPool,
                connect_args={"isolation_level": None, "timeout": patience},
            )
            self.connection = self._engine.connect()
            self._driver = cast("sqlite3.Connection", self.connection.connection.driver_connection)
            # A damaged byte then garbles one character instead of failing every query that reads it.
            self._driver.text_factory = _decode
            event.listen(self.connection, "begin", self._on_begin)
            try:
                self._prepare(data)
            except OSError as error:  # the file system has no locks
                self.close()
                raise self._not_opened(error) from error
            except BaseException:
                self.close()
                raise

    def _not_opened(self, error: OSError) -> LogError:
        reason = f"{error.strerror}; repair its folder, or set HANDIWORK_DATA to another one"
        return LogError(f"the log {self.path} cannot be opened: {reason}")

    def _on_begin(self, _: Connection) -> None:
        self._driver.execute(self._begin)

    def _prepare(self, data: Path) -> None:
        """Switch to WAL and create the tables, one process at a time: SQLite does not wait for a lock to switch."""
        with locked(data):
            self._pragma("journal_mode=WAL")
            self._pragma("synchronous=NORMAL")
            with self.writing(durable=False) as connection:
                searchable = inspect(connection).has_table(schema.contents.name)
                schema.prepare(connection, str(self.path))
                if not searchable:
                    contents.fill(connection)

    def _pragma(self, text: str) -> int | str | None:
        """Run a pragma outside any transaction and return its value."""
        row = self._driver.execute(f"PRAGMA {text}").fetchone()
        return row[0] if row else None

    @contextmanager
    def writing(self, durable: bool) -> Generator[Connection]:
        """Hold a write transaction; a ``durable`` one and all before it are on disk when it ends.

        Other transactions survive the death of the process, but not of the machine.
        """
        with self.errors():
            if durable != self._durable:
                self._pragma(f"synchronous={'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            self._begin = "BEGIN IMMEDIATE"
            with self.connection.begin():
                yield self.connection

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """Hold a read transaction: all its reads see the same snapshot."""
        with self.errors():
            self._begin = "BEGIN"
            with self.connection.begin():
                yield self.connection

    def version(self) -> int | str | None:
        """Return a value that changes when another process writes."""
        with self.errors():
            return self._pragma("data_version")

    def close(self) -> None:
        """Close the connection; the last one to close merges the WAL into the file."""
        with self.errors():
            self.connection.close()
            self._engine.dispose()

    @contextmanager
    def errors(self) -> Generator[None]:
        """Convert the database's exceptions to LogError."""
        import sqlite3

        try:
            yield
        except DBAPIError as error:
            raise LogError(self._explain(str(error.orig))) from error
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise LogError(self._explain(str(error))) from error

    def _explain(self, text: str) -> str:
        if "locked" in text:
            advice = "another process keeps it locked; find it with `fuser` and end it, then try again"
        elif "full" in text:
            advice = "free some space on its disk and try again; nothing of this operation was stored"
        elif "disk I/O error" in text:
            advice = (
                "its disk is full or failing: free some space on it and try again; nothing of this operation was stored"
            )
        elif "malformed" in text or "not a database" in text:
            advice = "the file is damaged; move it away, or recover it with `sqlite3 FILE .recover`"
        elif "readonly" in text or "unable to open" in text:
            advice = "give this user write access to the folder and its files"
        else:
            advice = "nothing of this operation was stored"
        return f"the log {self.path} failed: {text}; {advice}"
