"""Makes the sandbox that is asked for by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from handiwork.sandbox.base import Sandbox, SandboxError
from handiwork.sandbox.bubblewrap import BubblewrapSandbox
from handiwork.sandbox.client import SaveBlob
from handiwork.sandbox.docker import DockerSandbox
from handiwork.sandbox.docker_cli import OnStatus
from handiwork.sandbox.egress.proxy import Egress
from handiwork.sandbox.host import HostSandbox
from handiwork.sandbox.limits import ResourceLimits


def create(
    kind: str,
    session_dir: Path,
    workspace: Path,
    save_blob: SaveBlob,
    base: Path | None = None,
    mounts: Sequence[str] = (),
    read_only: Sequence[Path] = (),
    limits: ResourceLimits = ResourceLimits(),  # noqa: B008 - frozen
    soft_timeout: float = 120.0,
    egress: Egress | None = None,
    image: str | None = None,
    on_status: OnStatus = lambda _: None,
    withheld: Collection[str] = (),
) -> Sandbox:
    """Return the sandbox of a kind, "bubblewrap", "docker" or "none", not started; ``base`` None works in place.

    "docker" needs an ``image``, and tells ``on_status`` what its start waits for. "none" has no mounts: the agent
    works in ``base`` itself where there is one, with the user's environment but for the variables ``withheld``.
    Raises SandboxError.
    """
    files = (session_dir, workspace, save_blob, base, mounts, read_only, limits, soft_timeout, egress)
    if kind == "bubblewrap":
        return BubblewrapSandbox(*files)
    if kind == "docker" and image is not None:
        return DockerSandbox(image, *files, on_status)
    if kind == "none":
        return HostSandbox(base or workspace, save_blob, limits, soft_timeout, withheld)
    raise SandboxError(f'there is no sandbox "{kind}"; choose "bubblewrap", "docker" with an image, or "none".')
