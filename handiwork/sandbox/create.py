"""Makes the sandbox that is asked for by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from handiwork.sandbox.base import Sandbox, SandboxError
from handiwork.sandbox.bubblewrap import BubblewrapSandbox
from handiwork.sandbox.client import SaveBlob
from handiwork.sandbox.host import HostSandbox
from handiwork.sandbox.limits import ResourceLimits
from handiwork.sandbox.snapshots import Snapshots


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
    layer: Path | None = None,
    snapshots: Snapshots | None = None,
) -> Sandbox:
    """Return the sandbox of a kind, "bubblewrap" or "none", not started; ``base`` None works in place.

    "none" has no mounts: the agent works in ``base`` itself where there is one. ``layer`` and ``snapshots`` are those
    of BubblewrapSandbox; the others have none. Raises SandboxError.
    """
    if kind == "bubblewrap":
        common = (session_dir, workspace, save_blob, base, mounts, read_only, limits, soft_timeout)
        return BubblewrapSandbox(*common, layer=layer, snapshots=snapshots)
    if kind == "none":
        return HostSandbox(base or workspace, save_blob, limits, soft_timeout)
    raise SandboxError(f'there is no sandbox "{kind}"; choose "bubblewrap" or "none".')
