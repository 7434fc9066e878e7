"""Calls the Docker daemon: through its command line, which knows contexts, credentials and daemons by ssh.

Queries go to the socket of this machine's daemon if they can: starting ``docker`` takes longer than their answers.
"""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import quote, urlencode

import httpx2

from handiwork.errors import SandboxError
from handiwork.paths import home_dir
from handiwork.process import Process
from handiwork.sandbox import bundle

OWNER, SESSION = "handiwork.owner", "handiwork.session"
"""The labels of a container: the process that runs it, and its session."""

IMAGE_VOLUME = "handiwork.image-volume"
"""The label of a volume that has an image's files at a path that it declares; without a container it is removed."""

HARDENED = (
    *("--cap-drop=ALL", "--security-opt=no-new-privileges", "--network=none", "--ipc=private"),
    *("--hostname=sandbox", "--add-host=sandbox:127.0.0.1", "--log-driver=none", "--no-healthcheck"),
)

OnStatus = Callable[[str], None]
"""Called with a description of a slow step before it starts."""

NOT_SEEN = "bind source path does not exist"
"""The daemon's message for a file of this machine that it does not see."""

_ANSWER_TIMEOUT = 60.0
_SOCKET = "/var/run/docker.sock"
_SOCKET_TIMEOUT = {"connect": 5.0, "read": 30.0, "write": 5.0, "pool": 5.0}
_ARCHITECTURE = "amd64"
_ALL = "{{json .}}"
_CONTAINER = '{{.ID}} {{.Label "' + OWNER + '"}}'


@dataclass(frozen=True)
class DockerImage:
    """An image before it runs; ``id`` identifies its content, and ``volumes`` are the paths that it declares."""

    id: str
    environment: dict[str, str]
    volumes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Daemon:
    """The daemon's properties: if it is ``rootless``, root inside is the calling user outside.

    ``machine`` is uname's name of the processor; any but x86_64 emulates the containers' programs.
    """

    rootless: bool
    machine: str


async def is_elsewhere() -> bool:
    """Return whether docker reaches the daemon by other means than a socket of this machine. Raises SandboxError.

    If False, the daemon may still not see this machine's files, for example behind a forwarded socket.
    """
    host = os.environ.get("DOCKER_HOST")
    if not host and _uses_context():
        host = await checked("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
    return bool(host) and not host.startswith("unix://")


async def image_of(name: str, on_status: OnStatus) -> DockerImage:
    """Return the image's description, after pulling the image if it is missing. Raises SandboxError."""
    if not name or name.startswith("-") or any(map(str.isspace, name)):
        raise SandboxError(f'"{name}" is no name of an image: give one like --image debian:12')
    description = await _ask(f"/images/{quote(name)}/json")
    if description is None:
        description = await _inspect(name, on_status)
    if (description["Os"], description["Architecture"]) != ("linux", _ARCHITECTURE):
        platform = f"{description['Os']}/{description['Architecture']}"
        raise SandboxError(
            f"the image {name} is for {platform}, and the bundle for linux/{_ARCHITECTURE}: use another."
        )
    variables = (entry.partition("=") for entry in description["Config"].get("Env") or ())
    volumes = tuple(description["Config"].get("Volumes") or ())
    return DockerImage(description["Id"], {variable: value for variable, _, value in variables}, volumes)


async def daemon() -> Daemon:
    """Describe the daemon. Raises SandboxError if it does not answer."""
    info = await _ask("/info") or json.loads(await checked("info", "--format", _ALL))
    rootless = any(str(option).startswith("name=rootless") for option in info["SecurityOptions"] or ())
    return Daemon(rootless, info["Architecture"])


async def sweep() -> list[str]:
    """Remove the containers of this machine's dead processes, and return their ids. Raises SandboxError."""
    containers = await _ask(f"/containers/json?{urlencode({'all': 1, 'filters': json.dumps({'label': [OWNER]})})}")
    if containers is None:
        lines = await checked("ps", "--all", "--no-trunc", "--filter", f"label={OWNER}", "--format", _CONTAINER)
        rows = [line.split() for line in lines.splitlines()]
    else:
        rows = [[container["Id"], *container["Labels"][OWNER].split()] for container in containers]
    dead = [row[0] for row in rows if len(row) == 4 and Process(row[1], int(row[2]), row[3]).alive() is False]
    if dead:
        await remove(*dead)
    await remove_image_volumes()
    return dead


async def remove_image_volumes() -> None:
    """Remove the volumes with an image's files that no container uses; Docker keeps volumes with a name otherwise."""
    code, names = await run("volume", "ls", "--quiet", "--filter=dangling=true", f"--filter=label={IMAGE_VOLUME}")
    if code == 0 and names:
        await run("volume", "rm", *names.split())


async def remove(*containers: str) -> None:
    """End the containers and remove them with their volumes; missing or vanishing ones are not an error."""
    await run("rm", "--force", "--volumes", *containers)


async def remove_folder(folder: Path, image: str) -> None:
    """Remove a folder as root, in a container of the image; what cannot be removed stays."""
    mounts = (f"src={bundle.bundle_root()},dst={bundle.PREFIX},readonly=true", f"src={folder.parent},dst=/mnt")
    options = (*HARDENED, "--cap-add=DAC_OVERRIDE", "--user=0:0", *(f"--mount=type=bind,{mount}" for mount in mounts))
    program = (f"--entrypoint={bundle.PREFIX}/bin/busybox", image, "rm", "-rf", f"/mnt/{folder.name}")
    await run("run", "--rm", "--pull=never", "--read-only", f"--label={OWNER}={owner()}", *options, *program)


@asynccontextmanager
async def empty_image(name: str) -> AsyncGenerator[None]:
    """Create an empty image, and remove it at the end. Raises SandboxError."""
    with NamedTemporaryFile(suffix=".tar") as archive:
        archive.write(bytes(10240))
        archive.flush()
        code, output = await run("import", archive.name, name)
    if code:
        raise SandboxError(explained(output))
    try:
        yield
    finally:
        await run("image", "rm", "--force", name)


def owner() -> str:
    """Return the value of the label ``OWNER`` for containers of this process."""
    this = Process.this()
    return f"{this.host} {this.pid} {this.started}"


def explained(text: str) -> str:
    """Return Docker's error as one message that says how to fix it."""
    text = text.partition("\n\nRun 'docker")[0].strip().removeprefix("docker: ")
    host = os.environ.get("DOCKER_HOST")
    origin = f" (DOCKER_HOST is {host})" if host else ""
    lowered = text.lower()
    if "permission denied while trying to connect" in lowered:
        return f"you may not use the Docker daemon{origin}: `sudo usermod -aG docker $USER`, then log in again. {text}"
    if "cannot connect to the docker daemon" in lowered or "error during connect" in lowered:
        return f"no Docker daemon answers{origin}: start it (`sudo systemctl start docker`). Docker said: {text}"
    if NOT_SEEN in lowered:
        return f"the Docker daemon{origin} does not see the files of this machine: use a daemon that runs on it. {text}"
    return f"Docker said: {text}"


async def _ask(path: str) -> Any | None:
    """Return the daemon's JSON answer to GET; None if it does not answer, and then ``docker`` may say why."""
    socket = _socket()
    if socket is None:
        return None
    try:
        async with httpx2.AsyncHTTPTransport(uds=socket, verify=False) as transport:
            request = httpx2.Request("GET", f"http://docker{path}", extensions={"timeout": _SOCKET_TIMEOUT})
            response = await transport.handle_async_request(request)
            await response.aread()
    except httpx2.TransportError:
        return None
    return response.json() if response.status_code == 200 else None


def _uses_context() -> bool:
    """Return whether a non-default context may be in use; running docker takes longer than this check."""
    if "DOCKER_CONTEXT" in os.environ:
        return True
    if chosen := os.environ.get("DOCKER_CONFIG"):
        folder = Path(chosen)
    elif home := home_dir():
        folder = home / ".docker"
    else:
        return False
    try:
        return b'"currentContext"' in (folder / "config.json").read_bytes()
    except OSError:
        return False


def _socket() -> str | None:
    """Return the socket that ``docker`` would use; None if only ``docker`` knows it."""
    if host := os.environ.get("DOCKER_HOST"):
        return host.removeprefix("unix://") if host.startswith("unix://") else None
    return None if _uses_context() else _SOCKET


async def _inspect(name: str, on_status: OnStatus) -> dict[str, Any]:
    """Return docker's description of an image, which is pulled if it is missing."""
    code, output = await run("image", "inspect", "--format", _ALL, name)
    if code and "no such image" in output.lower():
        await _pull(name, on_status)
        return json.loads(await checked("image", "inspect", "--format", _ALL, name))
    if code:
        raise SandboxError(explained(output))
    return json.loads(output)


async def checked(*arguments: str) -> str:
    """Run docker and return its output. Raises SandboxError with its error message if it fails."""
    code, output = await run(*arguments)
    if code:
        raise SandboxError(explained(output))
    return output


async def run(*arguments: str) -> tuple[int, str]:
    """Run docker; return its exit code, and its output if that is 0, else its errors. Raises SandboxError."""
    process = await _start(*arguments)
    try:
        output, errors = await asyncio.wait_for(process.communicate(), _ANSWER_TIMEOUT)
    except BaseException as error:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            raise SandboxError(f"the Docker daemon did not answer in {_ANSWER_TIMEOUT:.0f} s: restart it.") from error
        raise
    code = process.returncode or 0
    return code, (errors or output if code else output).decode("utf-8", "replace").strip()


async def _pull(name: str, on_status: OnStatus) -> None:
    """Pull the image and report the number of layers that are ready."""
    on_status(f"pulling the image {name}")
    process = await _start("pull", name, merged=True)
    assert process.stdout is not None
    layers: set[str] = set()
    ready: set[str] = set()
    last = ""
    try:
        async for line in process.stdout:
            last = line.decode("utf-8", "replace").strip()
            layer, colon, state = last.partition(": ")
            if colon and state == "Pulling fs layer":
                layers.add(layer)
            elif colon and state in ("Pull complete", "Already exists"):
                ready.add(layer)
                on_status(f"pulling the image {name}: {len(ready)} of {len(layers | ready)} layers")
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code:
        raise SandboxError(
            f"there is no image {name} here, and it cannot be pulled: {last} Check its name, or make it with "
            f"`docker build --tag {name} .` or `docker load`."
        )


async def _start(*arguments: str, merged: bool = False) -> asyncio.subprocess.Process:
    return await start(*arguments, stdout=PIPE, stderr=STDOUT if merged else PIPE)


async def start(*arguments: str, stdin: int = DEVNULL, stdout: int, stderr: int) -> asyncio.subprocess.Process:
    """Start docker in its own process session, so that Ctrl-C in a terminal does not reach it. Raises SandboxError."""
    try:
        return await asyncio.create_subprocess_exec(
            *("docker", *arguments), stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
        )
    except FileNotFoundError as error:
        raise SandboxError(
            "--image needs Docker, and there is no program `docker` on the PATH: install it (`sudo apt-get install "
            "docker.io`), or leave --image out to use bubblewrap."
        ) from error
