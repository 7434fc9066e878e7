"""Clone a git repository from the network: git runs in a sandbox that reaches the repository's host alone."""

from __future__ import annotations

import asyncio
import os
import re
import tarfile
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from handiwork.errors import HandiworkError
from handiwork.events.action import CmdRunAction
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.record import EgressEvent
from handiwork.paths import private_dirs
from handiwork.sandbox.create import create
from handiwork.sandbox.egress.proxy import Egress
from handiwork.workspace.git.config import ConfigError, format_config, parse_config
from handiwork.workspace.git.directory import harmless_settings
from handiwork.workspace.layers import SandboxPaths
from handiwork.workspace.snapshots.object_store import remove_tree

WORK = ".cloning"
"""The folder of the sandboxes, below that of the clones."""

SECONDS = 900.0
"""Seconds that a clone may take."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_UNSAFE = re.compile(r"\.git/(hooks/|config$|objects/info/(http-)?alternates$)")
"""Files of a repository that name programs or other places; git in the sandbox makes none that a clone needs."""


class CloneError(HandiworkError):
    """The repository cannot be cloned; the text has git's message or the remedy."""


async def clone(url: str, parent: Path) -> Path:
    """Clone the repository at an http or https address into a new folder of ``parent``, and return the folder.

    The folder has the repository's name, with a number if there is one already. The host gets no credentials. Raises
    CloneError, SandboxError, OSError.
    """
    address = _checked(url)
    port = address.port
    host = f"{address.hostname}:{port}" if port not in (None, 80, 443) else str(address.hostname)
    refusals: list[str] = []

    async def record(event: EgressEvent) -> bool:
        refusals.extend([] if event.allowed else [f"{event.host}:{event.port}: {event.reason}"])
        return True

    private_dirs(parent / WORK)
    with tempfile.TemporaryDirectory(dir=parent / WORK) as name:
        work = Path(name)
        for folder in ("base", "workspace"):
            (work / folder).mkdir()
        paths = SandboxPaths(work, work / "workspace", work / "base")
        sandbox = create("bubblewrap", paths, _no_blob, egress=Egress(lambda: [host], record))
        try:
            await sandbox.start()
            command = f"GIT_TERMINAL_PROMPT=0 git clone --quiet --template= -- '{url}' repository"
            command += " && tar -cf tar -C repository ."
            done = await sandbox.execute(CmdRunAction(command=command, timeout=SECONDS))
            if not isinstance(done, CmdOutputObservation) or done.exit_code != 0:
                raise CloneError(f"git cannot clone {url}: {'; '.join(refusals) or done.text.strip()[-1000:]}")
            with (work / "tar").open("wb") as file:
                async for piece in sandbox.download("tar"):
                    await asyncio.to_thread(file.write, piece)
        finally:
            await sandbox.close()
        await asyncio.to_thread(_extract, work / "tar", work / "clone", url)
        await asyncio.to_thread(remove_tree, work / "overlay")  # has files of the sandbox's user
        return _move(work / "clone", parent, _name(address))


def _checked(url: str) -> SplitResult:
    wrong = CloneError("this is not the address of a repository: give one like https://HOST/OWNER/NAME.git")
    try:
        address = urlsplit(url)
        named = bool(address.hostname) and address.port != 0
    except ValueError:
        raise wrong from None
    if address.scheme not in ("http", "https") or not named or not re.fullmatch(r"[!-&(-~]+", url):
        raise wrong
    if "@" in address.netloc:
        raise CloneError("the address has a user name or password: clone the repository yourself and choose its folder")
    return address


def _name(address: SplitResult) -> str:
    name = address.path.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return name if _NAME.fullmatch(name) else "repository"


def _move(clone: Path, parent: Path, name: str) -> Path:
    """Rename the clone to a free name; another clone may take one at the same time."""
    number = 1
    while True:
        target = parent / (name if number == 1 else f"{name}-{number}")
        try:
            target.mkdir()
        except FileExistsError:
            number += 1
            continue
        clone.rename(target)
        return target


def _extract(archive: Path, target: Path, url: str) -> None:
    """Write the archive's folders and files, then its links, so that no file is written through a link.

    The configuration of the repository keeps only settings that make git run nothing.
    """
    links: list[tuple[Path, str]] = []
    settings = b""
    target.mkdir()
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = Path(member.name).parts
            path, relative = target.joinpath(*parts), "/".join(parts)
            if ".." in parts or member.name.startswith("/"):
                raise CloneError(f"the repository has a file outside itself: {member.name!r}")
            if relative == ".git/config" and (content := tar.extractfile(member)):
                settings = content.read()
            if _UNSAFE.match(relative):
                continue
            if member.isdir():
                path.mkdir(exist_ok=True)
            elif member.issym():
                links.append((path, member.linkname))
            elif content := tar.extractfile(member):
                with path.open("xb") as file:
                    while piece := content.read(1 << 20):
                        file.write(piece)
                path.chmod(0o755 if member.mode & 0o100 else 0o644)
    for path, link in links:
        os.symlink(link, path)
    try:
        harmless = harmless_settings(parse_config(settings))
    except ConfigError as error:
        raise CloneError(f"the repository's configuration is damaged: {error}") from None
    remote = [("remote.origin.url", url), ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")]
    (target / ".git/config").write_bytes(format_config([*harmless, *remote]))


async def _no_blob(data: AsyncIterator[bytes]) -> str:
    """Drop an output that is too large to show; no log refers to it."""
    async for _ in data:
        pass
    return ""
