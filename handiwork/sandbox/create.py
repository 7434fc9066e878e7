"""Creates the sandbox of a given kind: SANDBOXES is the table of all kinds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticKnownError

from handiwork.errors import SandboxError
from handiwork.sandbox.limits.limits import ResourceLimits

if TYPE_CHECKING:  # the settings import this module, so a kind's own modules are imported when a sandbox is created
    from handiwork.sandbox.base import Sandbox
    from handiwork.sandbox.client import SaveBlob
    from handiwork.sandbox.docker.cli import OnStatus
    from handiwork.sandbox.egress.proxy import Egress
    from handiwork.sandbox.served import OwnSkills
    from handiwork.workspace.layers import SandboxPaths
    from handiwork.workspace.session_files import LayerOwner
    from handiwork.workspace.snapshots.store import Snapshots


@dataclass(frozen=True)
class SandboxOptions:
    """The options of a new sandbox; each kind uses those it supports."""

    paths: SandboxPaths
    save_blob: SaveBlob
    read_only: Sequence[Path]
    limits: ResourceLimits
    soft_timeout: float
    snapshots: Snapshots | None
    egress: Egress | None
    image: str | None
    writable_root: bool
    on_status: OnStatus
    withheld: Collection[str]


def _bubblewrap(options: SandboxOptions) -> Sandbox:
    from handiwork.sandbox.bubblewrap.sandbox import BubblewrapSandbox

    return BubblewrapSandbox(
        options.paths,
        options.save_blob,
        options.read_only,
        options.limits,
        options.soft_timeout,
        options.snapshots,
        options.egress,
    )


def _docker(options: SandboxOptions) -> Sandbox:
    from handiwork.sandbox.docker.sandbox import DockerSandbox

    if options.image is None:
        raise SandboxError('the sandbox "docker" needs an image')
    return DockerSandbox(
        options.image,
        options.paths,
        options.save_blob,
        options.read_only,
        options.limits,
        options.soft_timeout,
        options.snapshots,
        options.egress,
        options.on_status,
        writable_root=options.writable_root,
    )


async def _docker_image_id(image: str, on_status: OnStatus) -> str:
    from handiwork.sandbox.docker.cli import image_of

    return (await image_of(image, on_status)).id


def _none(options: SandboxOptions) -> Sandbox:
    from handiwork.sandbox.host import HostSandbox

    folder = options.paths.base or options.paths.workspace
    return HostSandbox(folder, options.save_blob, options.limits, options.soft_timeout, options.withheld)


@dataclass(frozen=True)
class SandboxKind:
    """A kind of sandbox: its factory ``make``, and its properties known before a sandbox is created.

    ``isolated``: commands see no file and no process of this machine, and the workspace is an overlay over a copy.
    ``image_id`` returns the id of an image's content, and pulls the image if it is missing; without it the kind takes
    no image, with it one is required. ``layer_owner`` returns the owner of the files in a snapshot's layer; without it
    the sandbox maps owners itself.
    """

    make: Callable[[SandboxOptions], Sandbox]
    isolated: bool = True
    image_id: Callable[[str, OnStatus], Awaitable[str]] | None = None
    layer_owner: LayerOwner | None = None

    @property
    def takes_image(self) -> bool:
        """Whether an image is required."""
        return self.image_id is not None


def _container_ids(base: Path) -> tuple[int, int]:
    from handiwork.sandbox.users import container_ids

    return container_ids(base)


SANDBOXES: dict[str, SandboxKind] = {
    "bubblewrap": SandboxKind(_bubblewrap),
    "docker": SandboxKind(_docker, image_id=_docker_image_id, layer_owner=_container_ids),
    "none": SandboxKind(_none, isolated=False),
}
"""Every kind of sandbox, by its name: settings, flags and sessions take these names."""


def is_isolated(kind: str) -> bool:
    """Return whether the commands of a kind of sandbox run apart from this machine; True for an unknown kind."""
    return kind not in SANDBOXES or SANDBOXES[kind].isolated


async def image_id(kind: str, image: str | None, on_status: OnStatus) -> str:
    """Return the id of the content of a sandbox's image, "" for a sandbox without one. Raises SandboxError."""
    make_id = SANDBOXES[kind].image_id
    return "" if make_id is None or image is None else await make_id(image, on_status)


def _check_kind(kind: str) -> str:
    if kind not in SANDBOXES:
        *others, last = map(repr, SANDBOXES)
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(others)} or {last}"})
    return kind


SandboxName = Annotated[str, AfterValidator(_check_kind)]
"""A name in SANDBOXES, as a field of a setting or a session."""


def create(
    kind: str,
    paths: SandboxPaths,
    save_blob: SaveBlob,
    read_only: Sequence[Path] = (),
    limits: ResourceLimits = ResourceLimits(),  # noqa: B008 - frozen
    soft_timeout: float = 120.0,
    *,
    snapshots: Snapshots | None = None,
    egress: Egress | None = None,
    image: str | None = None,
    writable_root: bool = False,
    on_status: OnStatus = lambda _: None,
    withheld: Collection[str] = (),
    skills: Sequence[OwnSkills] = (),
) -> Sandbox:
    """Return the sandbox of a kind of SANDBOXES, not started.

    "docker" needs an ``image``, and reports to ``on_status`` why its start takes time; with ``writable_root``, which
    the other kinds ignore, the agent is root and may change the system, see DockerSandbox. "none" works directly in the
    base, if any, with the user's environment except the variables ``withheld``; it has no mounts and takes no
    snapshots. A notebook has the user's own ``skills`` if its sandbox is a ServedSandbox. Raises SandboxError.
    """
    if kind not in SANDBOXES:
        raise SandboxError(f'there is no sandbox "{kind}"; choose one of {", ".join(SANDBOXES)}')
    sandbox = SANDBOXES[kind].make(
        SandboxOptions(
            paths,
            save_blob,
            read_only,
            limits,
            soft_timeout,
            snapshots,
            egress,
            image,
            writable_root,
            on_status,
            withheld,
        )
    )
    if skills:
        from handiwork.sandbox.served import ServedSandbox

        if isinstance(sandbox, ServedSandbox):
            sandbox.own_skills = skills
    return sandbox
