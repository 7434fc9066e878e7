"""Whatever stands in the rows of events, it is read back as events, folded, and shown."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.agents.state import State
from handiwork.cli.terminal.transcript import Transcript
from handiwork.events.base import Event, UnknownEvent
from handiwork.events.codec import EVENT_TYPES, from_json, to_json
from handiwork.log.store import Store
from tests.fuzz.settings import CASES, fuzz_seed, fuzz_settings

ROWS = 4
"""Rows of one log; CASES counts rows."""

small = st.integers(-2, 6)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | small | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
BUILT_IN = {name: cls for name, cls in EVENT_TYPES.items() if cls.__module__.startswith("handiwork.")}
FIELDS = sorted({name for cls in BUILT_IN.values() for name in cls.model_fields if name != "schema_version"})
WORDS = ("running", "finished", "error", "paused", "user", "agent", "summary", "rewind", "malformed", "bash", "x")


def some_of(cls: type[Event]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of a known type, whose fields mostly fit."""
    fields = {
        name: st.sampled_from(WORDS) | small | st.just("2026-01-01T00:00:00Z") | values
        for name, field in cls.model_fields.items()
        if name != "schema_version"
    }
    needed = {name: fields[name] for name, field in cls.model_fields.items() if field.is_required()}
    others = {name: value for name, value in fields.items() if name not in needed}
    return st.fixed_dictionaries({"type": st.just(cls.kind), **needed}, optional=others)


objects = st.sampled_from(sorted(BUILT_IN)).flatmap(lambda name: some_of(BUILT_IN[name]))
strange = st.dictionaries(st.sampled_from(["type", "schema", *FIELDS]), values, max_size=6)
rows = st.one_of(
    objects.map(json.dumps),
    strange.map(json.dumps),
    values.map(json.dumps),
    st.just('{"type":"New","id":1,"number":1e999}'),
    st.text(max_size=30),
    st.binary(max_size=30),
    st.tuples(objects.map(json.dumps), st.integers(0, 40)).map(lambda pair: pair[0][: pair[1]]),
)


class Log:
    """A session whose rows are written behind the log's back."""

    def __init__(self, data: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._store = Store.open(data)
        self._log = self._loop.run_until_complete(self._store.create(agent="a", model="m"))
        self._database = sqlite3.connect(data / "handiwork.db", isolation_level=None)
        self._database.execute("PRAGMA synchronous=OFF")

    def read(self, texts: list[str | bytes]) -> tuple[list[Event], list[str]]:
        """Return what the log gives of rows with these texts: as events, and as JSON."""
        self._database.execute("BEGIN IMMEDIATE")
        self._database.execute("DELETE FROM events")
        insert = "INSERT INTO events VALUES (?, ?, 'Any', 0, ?)"
        self._database.executemany(insert, [(self._log.id, n, text) for n, text in enumerate(texts, 1)])
        self._database.execute("UPDATE sessions SET head = ?", (len(texts),))
        self._database.execute("COMMIT")
        return self._loop.run_until_complete(self._both())

    async def _both(self) -> tuple[list[Event], list[str]]:
        return await self._log.read(), await self._log.texts()

    def close(self) -> None:
        self._database.close()
        self._loop.run_until_complete(self._store.close())
        self._loop.close()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    log = Log(tmp_path_factory.mktemp("fuzz") / "data")
    yield log
    log.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
@fuzz_seed
@settings(fuzz_settings, max_examples=CASES // ROWS)
@given(texts=st.lists(rows, min_size=ROWS, max_size=ROWS))
def test_rows_of_any_content_are_read_folded_and_shown(log: Log, texts: list[str | bytes]) -> None:
    events, as_json = log.read(texts)
    numbers = list(range(1, len(texts) + 1))
    assert [event.id for event in events] == numbers
    assert [json.loads(text)["id"] for text in as_json] == numbers
    state, transcript = State(), Transcript("session")
    for event in events:
        state.apply(event)
        list(transcript.lines(event))
        assert json.loads(to_json(event))["id"] == event.id
    assert state.last_id == len(texts)
    assert state.active >= 0
    assert len(state.pending) <= len(texts)


@pytest.mark.slow
@fuzz_seed
@settings(fuzz_settings, max_examples=CASES // 10)
@given(data=strange)
def test_an_object_of_an_unknown_type_is_kept_as_it_was(data: dict[str, Any]) -> None:
    data = {**data, "type": f"New{data.get('type')}"}
    event = from_json(json.dumps(data))
    assert isinstance(event, UnknownEvent)
    assert event.unknown == data
