"""The manifest: the mode, size and content of every file of a workspace's base at the time of the copy."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from handiwork.errors import WorkspaceError

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One path: ``mode`` is st_mode, ``size`` is in bytes; only files have ``sha256``, only links ``target``."""

    type: Literal["file", "link", "dir"]
    mode: int
    size: int
    mtime_ns: int
    sha256: str = ""
    target: str = ""


Manifest = dict[str, ManifestEntry]


def save_manifest(manifest: Manifest, file: Path) -> None:
    """Write the manifest as JSON: for each path, an array of the entry's fields."""
    write_private(file, json.dumps({path: astuple(entry) for path, entry in manifest.items()}))


def load_manifest(file: Path) -> Manifest:
    """Read a manifest written by ``save_manifest``. Raises WorkspaceError if it cannot be read."""
    try:
        return {path: ManifestEntry(*fields) for path, fields in json.loads(file.read_text()).items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise damaged(file, error) from None


def damaged(file: Path, error: Exception) -> WorkspaceError:
    """Return the error for an unusable file in a session's folder."""
    why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
    return WorkspaceError(
        f"{file} is missing or damaged ({why}), so the files of session {file.parent.name} cannot be used: "
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


def digest(stream: BinaryIO) -> str:
    """Return the SHA-256 of the rest of ``stream``, in hex."""
    sha256 = hashlib.sha256()
    while block := stream.read(CHUNK):
        sha256.update(block)
    return sha256.hexdigest()
