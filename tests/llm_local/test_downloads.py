"""A model is downloaded in the background, and the state of its download can be asked for."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from handiwork.llm.errors import ModelNotFoundError, ProviderError
from handiwork.llm.local.weights import KNOWN, Downloads, DownloadState
from tests.llm_local.tiny_weights import CONTENT, Hub, weights

SIZE = len(CONTENT)


@pytest.fixture(autouse=True)
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes the tiny weights a known model, and returns their place."""
    monkeypatch.setenv("HANDIWORK_CACHE", str(tmp_path))
    monkeypatch.setitem(KNOWN, "tiny", weights())
    return tmp_path / "models/tiny.gguf"


async def until_done(downloads: Downloads) -> DownloadState:
    while not (state := downloads.advance("tiny")).done:
        await asyncio.sleep(0.01)
    return state


async def test_the_first_call_begins_and_later_ones_say_how_far_it_is(hub: Hub, tiny: Path) -> None:
    hub.cuts, hub.hangs = [50_000], True
    downloads = Downloads()
    assert downloads.advance("tiny") == DownloadState(0, SIZE, done=False)
    while downloads.advance("tiny").fetched < 50_000:
        await asyncio.sleep(0.01)
    assert downloads.advance("tiny") == DownloadState(50_000, SIZE, done=False)
    await downloads.close()
    hub.hangs = False
    hub.go_on.set()
    after = Downloads()
    assert await until_done(after) == DownloadState(SIZE, SIZE, done=True)
    assert tiny.read_bytes() == CONTENT
    assert hub.ranges == [0, 50_000]
    assert Downloads().advance("tiny").done


async def test_a_failure_is_said_once_and_the_next_call_begins_again(hub: Hub, tiny: Path) -> None:
    hub.cuts = [30_000, 30_000]
    downloads = Downloads()
    with pytest.raises(ProviderError, match="could not be fetched from the model hub"):
        await until_done(downloads)
    await until_done(downloads)
    assert tiny.read_bytes() == CONTENT


async def test_nothing_is_downloaded_for_a_missing_library(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModelNotFoundError, match="need xllamacpp"):
        Downloads().advance("tiny")
    assert hub.ranges == []
