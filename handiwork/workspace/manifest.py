"""The manifest: the mode, size and content of every file of a workspace's base at the time of the copy."""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.workspace.snapshots.tree import TreeNode

Manifest = dict[str, TreeNode]
"""The files, links and directories of a base by path; the value of a directory is not set."""


def save_manifest(manifest: Manifest, file: Path) -> None:
    """Write the manifest as JSON: for each path, an array of the node's fields."""
    write_private(file, json.dumps(manifest))


def load_manifest(file: Path) -> Manifest:
    """Read a manifest written by ``save_manifest``. Raises WorkspaceError if it cannot be read."""
    try:
        # Earlier versions wrote the target of a link as a sixth field, and st_mode as the mode.
        return {path: TreeNode(*islice(fields, 5)) for path, fields in json.loads(file.read_text()).items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise damaged(file, error) from None


def damaged(file: Path, error: Exception) -> WorkspaceError:
    """Return the error for an unusable file in a session's folder."""
    reason = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
    return WorkspaceError(
        f"{file} is missing or damaged ({reason}), so the files of session {file.parent.name} cannot be used: "
        "restore it from a backup, or delete the session; other sessions are not affected"
    )


def private_dirs(folder: Path) -> None:
    """Create a directory and its missing parents, accessible only to the user."""
    if not folder.is_dir():
        private_dirs(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def write_private(file: Path, text: str) -> None:
    """Atomically write a file that only the user can read."""
    part = file.with_name(f"{file.name}.part")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "w") as stream:
        stream.write(text)
    part.replace(file)
