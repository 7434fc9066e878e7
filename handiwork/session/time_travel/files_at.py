"""The files of a session as they are, or were after an event, read without its sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from handiwork.log.eventlog import EventLog
from handiwork.session.open import setup_of
from handiwork.session.storage.branches import work_dir
from handiwork.session.storage.layout import layer_of, session_dir
from handiwork.session.time_travel.fork import tree_after
from handiwork.workspace.copy import Workspace
from handiwork.workspace.layers import WORKSPACE_LAYER, layers_of, mount_layer, upper_dir
from handiwork.workspace.overlay_view import OverlayView


async def files(data: Path, log: EventLog, at: int | None = None) -> OverlayView:
    """Return the files as they are now, or as they were after event ``at``.

    Raises WorkspaceError, and SetupError where the session keeps no earlier files.
    """
    setup, folder = await setup_of(log), session_dir(data, log.id)
    tree = None if at is None else await tree_after(log, at)
    if setup.in_place:
        return OverlayView([Path(setup.workspace)])
    if setup.sandbox == "none":
        return OverlayView([work_dir(folder)])
    return await asyncio.to_thread(_stacked, folder, tree)


def _stacked(folder: Path, tree: str | None) -> OverlayView:
    workspace = Workspace.load(folder)
    if tree is not None:
        workspace = replace(workspace, tree=tree)
    layer = layer_of(folder, workspace)

    def above(name: str, written: Path) -> Sequence[Path]:
        return [*([layer / name] if layer else []), *([written] if tree is None else [])]

    mounts = {
        name: [workspace.source / name, *above(mount_layer(name), layers_of(folder, name) / "upper")]
        for name in workspace.mounts
    }
    return OverlayView([workspace.base, *above(WORKSPACE_LAYER, upper_dir(folder))], mounts)
