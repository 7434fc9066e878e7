"""A container's view of this machine, as options of ``docker run``."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

from handiwork.errors import SandboxError
from handiwork.sandbox import bundle
from handiwork.sandbox.bubblewrap.mounts import HOME
from handiwork.sandbox.docker import cli as docker_cli
from handiwork.sandbox.egress.inside import CERTIFICATES, SOCKET
from handiwork.sandbox.toolchains import credentials_in
from handiwork.workspace import in_place
from handiwork.workspace.layers import (
    HOME_LAYER,
    WORKSPACE_LAYER,
    SandboxPaths,
    git_layers,
    home_layers,
    layers_of,
    mount_layer,
)

GIVER = "/run/handiwork.sock"
"""The path on which the server inside asks for its socket."""

_SEPARATORS = frozenset(':,\\"')
"""Characters that would end an option of an overlay, or need more escapes than Docker passes on."""

_POINTS = (HOME, bundle.PREFIX, GIVER, "/tmp", "/var/tmp")
"""The mount points of every container besides the workspace."""


def volume_options(volumes: Sequence[str], paths: SandboxPaths, read_only: Sequence[Path]) -> list[str]:
    """Return options that make the image's volumes read-only, like its other files.

    Docker's own are writable, and in no snapshot or limit. One that contains another mount, or lies in the workspace or
    the home, stays Docker's own. The new ones have names, since Docker refuses to mount a volume without a name
    read-only.
    """
    points = [*map(Path, _POINTS), paths.workspace, *read_only]
    options: list[str] = []
    for volume in map(Path, volumes):
        is_inside = any(map(volume.is_relative_to, (paths.workspace, HOME)))
        if not is_inside and not any(point.is_relative_to(volume) for point in points):
            name = ("src", f"handiwork-{uuid4().hex}"), ("volume-label", docker_cli.IMAGE_VOLUME)
            place = ("dst", volume), ("readonly", "true")
            options.append(f"--mount={_options(('type', 'volume'), *name, *place)}")
    return options


def platform_mounts(socket: Path) -> Iterator[str]:
    """Yield the mounts that the server inside needs, and the browser's if it is installed."""
    yield _bind(bundle.bundle_root(), bundle.PREFIX, read_only=True)
    yield _bind(bundle.inside_code(), f"{bundle.PREFIX}/app", read_only=True)
    if (browser := bundle.browser_root()) is not None:
        yield _bind(browser, bundle.BROWSER, read_only=True)
    yield _bind(socket, GIVER)


def home_mount(paths: SandboxPaths) -> str:
    """Return the mount of the session's own home, laid over that of the snapshot a fork begins with."""
    if paths.layer is None:
        return _bind(paths.session_dir / "home", HOME)
    return overlay(Path(HOME), [paths.layer / HOME_LAYER], home_layers(paths.session_dir))


def egress_mounts(proxy: Path, certificates: Path | None) -> Iterator[str]:
    """Yield the mounts of the proxy's socket and this machine's trusted certificates."""
    yield _bind(proxy, SOCKET, read_only=True)
    if certificates is not None:
        yield _bind(certificates.resolve(), CERTIFICATES, read_only=True)


def workspace_mounts(paths: SandboxPaths, protected: Sequence[str] = ()) -> Iterator[str]:
    """Yield the workspace's mounts: the copy over its base, or the real one with its ``protected`` paths read-only."""
    if paths.base is None:
        for path, access in in_place.mounts(paths.workspace, protected):
            real = paths.workspace / path
            if access == "layered":
                yield overlay(real, [real], git_layers(paths.session_dir))
            else:
                yield _bind(real, real, read_only=access == "read-only")
        return
    points = points_dir(paths.session_dir)
    snapshot_layers = [] if paths.layer is None else [paths.layer / WORKSPACE_LAYER]
    yield overlay(paths.workspace, [*snapshot_layers, paths.base, points], paths.session_dir / "overlay")
    for name in paths.mounts:
        snapshot_layers = [] if paths.layer is None else [paths.layer / mount_layer(name)]
        real = paths.workspace / name
        lower = real if paths.has(name) else points / name
        yield overlay(real, [*snapshot_layers, lower], layers_of(paths.session_dir, name))


def read_only_mounts(paths: Sequence[Path], empty: Path) -> Iterator[str]:
    """Yield mounts of this machine's paths at their own paths, with credentials covered, files by ``empty``."""
    for path in sorted(paths):
        yield _bind(path, path, read_only=True)
    for path in credentials_in(paths):
        yield _options(("type", "tmpfs"), ("dst", path)) if path.is_dir() else _bind(empty, path, read_only=True)


def make_points(paths: SandboxPaths, uid: int, gid: int) -> None:
    """Create the mount points for mounts in the copy, which Docker would otherwise create in its upper layer."""
    points = points_dir(paths.session_dir)
    folders = {points, *(points / part for name in paths.mounts for part in (Path(name), *Path(name).parents))}
    for folder in sorted(folders):
        if not folder.exists():
            folder.mkdir()
            os.chown(folder, uid, gid)


def points_dir(session_dir: Path) -> Path:
    """Return the folder of ``make_points``."""
    return session_dir / "overlay/points"


def _bind(source: Path, target: Path | str, *, read_only: bool = False) -> str:
    return _options(("type", "bind"), ("src", source), ("dst", target), *([("readonly", "true")] * read_only))


def overlay(target: Path, lowers: Sequence[Path], layers: Path) -> str:
    """Return an anonymous volume, removed with its container; the daemon mounts the overlay, as it has the right to."""
    for path in (*lowers, layers):
        if separators := _SEPARATORS.intersection(str(path)):
            raise SandboxError(
                f'{path} has "{min(separators)}" in its name, which Docker cannot mount: use another place.'
            )
    lower = ":".join(map(str, lowers))
    return _options(
        *(("type", "volume"), ("dst", target), ("volume-nocopy", "true"), ("volume-driver", "local")),
        *(("volume-opt", "type=overlay"), ("volume-opt", "device=overlay")),
        ("volume-opt", f"o=lowerdir={lower},upperdir={layers}/upper,workdir={layers}/work,userxattr"),
    )


def _options(*pairs: tuple[str, object]) -> str:
    """Return the value of one ``--mount``: a line of CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([f"{name}={value}" for name, value in pairs])
    return line.getvalue()
