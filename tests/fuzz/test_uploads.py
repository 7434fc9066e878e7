"""Uploads: paths and contents that a client sends to the server inside."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.settings import fuzz_seed, fuzz_settings
from tests.inside.inside_client import Client, start_server, stop_server

NAMES = st.sampled_from(["a", "dir", "b\n", "\0", ".", "..", "", "é", "\u202e", "c" * 300, "%00", "&path=x", "#"])
PATHS = st.one_of(st.lists(NAMES, max_size=4).map("/".join), st.text(max_size=20).filter(lambda path: path[:1] != "/"))


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[asyncio.Runner, Client]]:
    with tempfile.TemporaryDirectory() as name, asyncio.Runner() as runner:
        folder = Path(name, "deep/deep/deep/deep")  # ".." stays in it
        folder.mkdir(parents=True)
        client = runner.run(start_server(folder))
        yield runner, client
        runner.run(stop_server(client))


@pytest.mark.slow
@pytest.mark.timeout(600)
@fuzz_seed
@fuzz_settings
@given(path=PATHS, data=st.binary(max_size=50))
def test_an_upload_is_written_whole_or_refused_in_words(
    server: tuple[asyncio.Runner, Client], path: str, data: bytes
) -> None:
    runner, client = server
    answer = runner.run(client.http.put("/files", params={"path": path}, content=data))
    assert answer.status_code < 500, answer.text
    if answer.status_code == 200:
        assert answer.json() == {"size": len(data)}
        assert Path(os.path.realpath(client.workspace / path)).read_bytes() == data
    else:
        assert answer.text
