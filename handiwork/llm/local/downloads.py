"""Downloads of local models in the background, for a server whose page shows how far they are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

from handiwork.llm.local.weights import KNOWN, Weights, fetch, is_complete
from handiwork.paths import cache_dir


class DownloadState(NamedTuple):
    """The bytes of the weights on this machine and in total; ``done`` means that the file is whole."""

    fetched: int
    size: int
    done: bool


class Downloads:
    """The downloads of this process by the models' names."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Path]] = {}

    def advance(self, name: str) -> DownloadState:
        """Return the state of a known model's download, which begins here if the weights are missing.

        A download that has failed raises its error once: see ``fetch``. Then it can begin again.
        """
        weights, folder = KNOWN[name], cache_dir() / "models"
        task = self._tasks.get(name)
        if task is None and is_complete(folder / weights.file, weights):
            return DownloadState(weights.size, weights.size, done=True)
        if task is None:
            task = self._tasks[name] = asyncio.create_task(fetch(weights, folder, lambda _done, _size: None))
        if task.done():
            del self._tasks[name]
            task.result()
            return DownloadState(weights.size, weights.size, done=True)
        return DownloadState(_part_size(weights, folder), weights.size, done=False)

    async def close(self) -> None:
        """End the downloads; the next ones go on with their data."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _part_size(weights: Weights, folder: Path) -> int:
    """Return the size of what was fetched, by any process."""
    for name in (f"{weights.file}.part", weights.file):
        try:
            return (folder / name).stat().st_size
        except FileNotFoundError:
            continue
    return 0
