"""The data of benchmarks: in a folder given by the user, or fetched from upstream once."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import httpx2

from handiwork.evals.benchmark import Benchmark, DataError
from handiwork.paths import cache_dir

HUB = "https://huggingface.co/"
"""The address of the files that HF_TOKEN gives access to."""


def folder_of(benchmark: Benchmark, data: Path | None) -> Path:
    """Return the folder for the benchmark's data: ``data`` itself, or its folder with the name of that data.

    Without ``data`` it is the benchmark's own, else in HANDIWORK_BENCHDATA or the user's cache; it need not exist.
    """
    name = benchmark.data_folder or benchmark.name
    if data is None and benchmark.own_data is not None:
        return benchmark.own_data
    if data is None:
        chosen = os.environ.get("HANDIWORK_BENCHDATA")
        data = Path(chosen) if chosen else cache_dir() / "benchmarks"
        return data / name
    return data / name if (data / name).is_dir() else data


def missing(benchmark: Benchmark, split: str, folder: Path) -> list[str]:
    """Return the files of a split that are missing in the folder."""
    return [path for path in benchmark.files(split) if not (folder / path).exists()]


async def get(benchmark: Benchmark, split: str, data: Path | None, status: Callable[[str], None]) -> Path:
    """Return the folder with the data of a split, fetched from upstream if no folder was given. Raises DataError.

    Files that these link to are fetched too; if one cannot be, ``status`` gets the reason.
    """
    folder, cache = folder_of(benchmark, data), cache_dir() / "benchmarks" / benchmark.name
    if not (lacking := missing(benchmark, split, folder)):
        if folder == cache:
            await _fetch_linked(benchmark, split, cache, status)
        return folder
    if data is not None:
        names = ", ".join(lacking)
        own_form = not all(benchmark.files(split)[path] for path in lacking)
        form = "files of {}, in the form that docs/benchmarks.md gives" if own_form else "upstream files of {}"
        raise DataError(f"{folder} has no {names}: --data must name a folder with the {form.format(benchmark.name)}")
    if benchmark.gated and not os.environ.get("HF_TOKEN"):
        raise DataError(f"{benchmark.title} is not freely available. {benchmark.gated} Or name its folder with --data.")
    for path in missing(benchmark, split, cache):
        address = benchmark.files(split)[path]
        if not address:
            sources = f"{benchmark.source} and docs/benchmarks.md"
            raise DataError(f"{path} of {benchmark.title} cannot be fetched: see {sources}, and give --data")
        status(f"fetching {path}")
        await _fetch(address, cache / path)
    await _fetch_linked(benchmark, split, cache, status)
    return cache


async def _fetch_linked(benchmark: Benchmark, split: str, folder: Path, status: Callable[[str], None]) -> None:
    try:
        addresses = benchmark.linked_files(folder, split)
    except (OSError, ValueError, KeyError):
        return  # loading the instances reports the faults of the files
    for path, address in addresses.items():
        if (folder / path).exists():
            continue
        try:
            await _fetch(address, folder / path)
        except DataError as error:
            status(f"no {path}: {error}")


async def _fetch(address: str, file: Path) -> None:
    """Fetch a file completely or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    token = os.environ.get("HF_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token and address.startswith(HUB) else {}
    try:
        async with (
            httpx2.AsyncClient(follow_redirects=True, timeout=60) as client,
            client.stream("GET", address, headers=headers) as answer,
        ):
            if not answer.is_success:
                raise DataError(f"{address} answered {answer.status_code}: get it another way, and give --data")
            with part.open("wb") as out:
                async for piece in answer.aiter_bytes():
                    out.write(piece)
        part.rename(file)
    except httpx2.HTTPError as error:
        raise DataError(f"{address} cannot be reached ({error}): get it another way, and give --data") from error
    finally:
        part.unlink(missing_ok=True)


async def digest(benchmark: Benchmark, split: str, folder: Path) -> str:
    """Return the SHA-256, in hex, of all data of a split: of their paths and contents, in the order of the paths.

    Git's own folders in clones are left out: commands such as ``git status`` and ``git fetch`` change them.
    """
    paths = sorted({*benchmark.files(split), *benchmark.further_files(split)})
    every = (path for name in paths for path in sorted((folder / name).rglob("*")) or [folder / name])
    files = (path for path in every if ".git" not in path.relative_to(folder).parts)
    return await asyncio.to_thread(files_hash, files, folder)


def files_hash(paths: Iterable[Path], folder: Path) -> str:
    """Return the SHA-256, in hex, of the files among ``paths``: of their paths below ``folder``, and their contents."""
    total = hashlib.sha256()
    for path in paths:
        if path.is_file():
            with path.open("rb") as data:
                digest = hashlib.file_digest(data, "sha256").hexdigest()
            total.update(f"{path.relative_to(folder)}\n{digest}\n".encode())
    return total.hexdigest()
