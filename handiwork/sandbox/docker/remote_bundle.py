"""The bundle on a remote daemon: a volume that is filled once and used by all sandboxes there."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from handiwork.errors import SandboxError
from handiwork.sandbox import bundle
from handiwork.sandbox.docker import cli as docker_cli

LABEL = "handiwork.bundle"
"""Label of these volumes; they stay until `docker volume prune --all --filter label=handiwork.bundle` removes them."""

_COMPLETE = "complete"
"""The file written last: if it exists, all others do."""

_PATIENCE = 600  # seconds that another process may take to send it


async def bundle_volume(image: str, on_status: docker_cli.OnStatus) -> str:
    """Return the name of the volume with this bundle, which is sent if it is missing. Raises SandboxError.

    ``image`` is any image the daemon has.
    """
    name = await asyncio.to_thread(_name)
    filler = f"{name}-filler"
    for _ in range(_PATIENCE):
        await docker_cli.checked("volume", "create", "--label", f"{LABEL}=1", name)
        code, output = await docker_cli.run(
            *("create", "--name", filler, "--label", f"{docker_cli.OWNER}={docker_cli.owner()}"),
            *("--mount", f"type=volume,src={name},dst={bundle.PREFIX},volume-nocopy=true"),
            *("--network=none", "--pull=never", "--entrypoint=none", image),
        )
        if not code:
            break
        # Container names are unique: another process is sending the bundle, or checking whether it is there.
        if "is already in use" not in output:
            raise SandboxError(docker_cli.explained(output))
        await asyncio.sleep(1)
    else:
        raise SandboxError(f"another process did not finish sending the bundle: `docker rm -f {filler}`, then retry.")
    try:
        if (await docker_cli.run("cp", f"{filler}:{bundle.PREFIX}/{_COMPLETE}", "-"))[0]:
            on_status("sending the bundle, once for this daemon")
            await asyncio.to_thread(_send, filler)
    finally:
        await docker_cli.remove(filler)
    return name


def _name() -> str:
    digest = hashlib.sha256()
    for path, name in _files():
        status = path.lstat()
        content = "" if name.startswith("app/") else f"{status.st_mtime_ns}"  # the code's folder name has a digest
        digest.update(f"{name}\0{status.st_mode}\0{status.st_size}\0{content}\0".encode())
    digest.update(bundle.inside_code().name.encode())
    return f"handiwork-bundle-{digest.hexdigest()[:16]}"


def _files() -> Iterator[tuple[Path, str]]:
    """Yield each path of the bundle and its path below the prefix, parents first."""
    for root, prefix in ((bundle.bundle_root(), ""), (bundle.inside_code(), "app/")):
        for path in sorted(root.rglob("*")):
            yield path, f"{prefix}{path.relative_to(root)}"


def _send(container: str) -> None:
    command = ["docker", "cp", "-", f"{container}:{bundle.PREFIX}"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        problem = ""
        try:
            _pack(cast(BinaryIO, process.stdin))
        except BrokenPipeError as error:
            problem = f"{error}"
        errors = process.stderr.read().decode("utf-8", "replace")
    if process.returncode or problem:
        raise SandboxError(f"the bundle cannot be sent to the Docker daemon. {docker_cli.explained(errors or problem)}")


def _pack(stream: BinaryIO) -> None:
    with stream, tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for path, name in _files():
            entry = archive.gettarinfo(os.fspath(path), name)
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            if entry.isreg():
                with open(path, "rb") as file:
                    archive.addfile(entry, file)
            else:
                archive.addfile(entry)
        archive.addfile(tarfile.TarInfo(_COMPLETE), io.BytesIO())
