"""Creates the sandbox of a given kind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from handiwork.errors import SandboxError
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.bubblewrap.sandbox import BubblewrapSandbox
from handiwork.sandbox.client import SaveBlob
from handiwork.sandbox.docker.cli import OnStatus
from handiwork.sandbox.docker.sandbox import DockerSandbox
from handiwork.sandbox.egress.proxy import Egress
from handiwork.sandbox.host import HostSandbox
from handiwork.sandbox.limits.limits import ResourceLimits
from handiwork.workspace.layers import SandboxPaths
from handiwork.workspace.snapshots.store import Snapshots


def create(
    kind: str,
    places: SandboxPaths,
    save_blob: SaveBlob,
    read_only: Sequence[Path] = (),
    limits: ResourceLimits = ResourceLimits(),  # noqa: B008 - frozen
    soft_timeout: float = 120.0,
    *,
    snapshots: Snapshots | None = None,
    egress: Egress | None = None,
    image: str | None = None,
    on_status: OnStatus = lambda _: None,
    withheld: Collection[str] = (),
) -> Sandbox:
    """Return the sandbox of a kind, "bubblewrap", "docker" or "none", not started.

    "docker" needs an ``image``, and reports to ``on_status`` why its start takes time. "none" works directly in the
    base if there is one, with the user's environment except the variables ``withheld``; it has no mounts and takes no
    snapshots. Raises SandboxError.
    """
    common = (places, save_blob, read_only, limits, soft_timeout, snapshots, egress)
    if kind == "bubblewrap":
        return BubblewrapSandbox(*common)
    if kind == "docker" and image is not None:
        return DockerSandbox(image, *common, on_status)
    if kind == "none":
        return HostSandbox(places.base or places.workspace, save_blob, limits, soft_timeout, withheld)
    raise SandboxError(f'there is no sandbox "{kind}"; choose "bubblewrap", "docker" with an image, or "none".')
