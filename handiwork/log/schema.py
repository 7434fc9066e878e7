"""The tables, the same for every database."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Connection, Float, Integer, MetaData, String, Table, Text, select

from handiwork.log.errors import LogError

VERSION = 1

metadata = MetaData()

about = Table(
    "about",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", Integer, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("created", Float(53), nullable=False, index=True),
    Column("updated", Float(53), nullable=False),
    Column("parent", String(40), nullable=True, index=True),
    Column("parent_event", BigInteger, nullable=False),
    Column("head", BigInteger, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("session", String(40), primary_key=True),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("type", Text, nullable=False),
    Column("timestamp", Float(53), nullable=False),
    Column("json", Text, nullable=False),
)

contents = Table(
    "contents",
    metadata,
    Column("session", String(40), primary_key=True),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
)

# Not columns of sessions: create_all adds a table to an older log, but no column to a table.
details = Table(
    "details",
    metadata,
    Column("session", String(40), primary_key=True),
    Column("archived", Boolean, nullable=False, default=False),
    Column("spent", Float(53), nullable=True),
    Column("added", BigInteger, nullable=True),
    Column("deleted", BigInteger, nullable=True),
)

leases = Table(
    "leases",
    metadata,
    Column("session", String(40), primary_key=True),
    Column("token", String(40), nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started", Text, nullable=False),
    Column("heartbeat", Float(53), nullable=False),
)


def prepare(connection: Connection, database: str) -> None:
    """Create missing tables. Raises LogError if a newer version wrote the database."""
    metadata.create_all(connection)
    version = connection.execute(select(about.c.value).where(about.c.name == "schema")).scalar()
    if version is None:
        connection.execute(about.insert().values(name="schema", value=VERSION))
    elif version > VERSION:
        raise LogError(
            f"{database} was written by a newer Handiwork (schema {version}, this one knows up to {VERSION}): "
            "upgrade Handiwork, or set HANDIWORK_DATA to another folder"
        )
