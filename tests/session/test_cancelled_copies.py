"""A copy of the user's files that is cancelled leaves nothing behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.session.open import create
from handiwork.session.steps.live import Status
from tests.session.bench import Bench


async def test_a_session_that_is_cancelled_while_its_files_are_copied_leaves_none(bench: Bench, tmp_path: Path) -> None:
    for number in range(500):
        (bench.workspace / f"folder{number}").mkdir()
        (bench.workspace / f"folder{number}" / "file").write_text("text\n")
    copying = asyncio.Event()

    def watch(item: object) -> None:
        if isinstance(item, Status) and "copying" in item.text:
            copying.set()

    data, llm = tmp_path / "data", ScriptedLLM([])
    creating = asyncio.create_task(create(bench.store, data, bench.config(), watch, "a task", llm=llm))
    await copying.wait()
    await asyncio.sleep(0.01)
    creating.cancel()
    await asyncio.sleep(0)
    creating.cancel()  # Ctrl-C is pressed again while nothing seems to happen
    with pytest.raises(asyncio.CancelledError):
        await creating
    await asyncio.sleep(0.5)  # a copy that went on would be there by now
    assert list((data / "sessions").iterdir()) == []
