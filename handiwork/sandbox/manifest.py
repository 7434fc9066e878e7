"""The manifest: what every file of a workspace's base was when the copy was made."""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import BinaryIO, Literal

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """One path: ``mode`` is st_mode, ``size`` in bytes; a file has ``sha256``, a link ``target``, else ""."""

    type: Literal["file", "link", "dir"]
    mode: int
    size: int
    mtime_ns: int
    sha256: str = ""
    target: str = ""


Manifest = dict[str, Entry]


def save_manifest(manifest: Manifest, file: Path) -> None:
    """Write it as JSON, one array of an entry's fields for each path."""
    file.write_text(json.dumps({path: astuple(entry) for path, entry in manifest.items()}))


def load_manifest(file: Path) -> Manifest:
    """Read what ``save_manifest`` wrote. Raises FileNotFoundError."""
    return {path: Entry(*fields) for path, fields in json.loads(file.read_text()).items()}


def digest(stream: BinaryIO) -> str:
    """The SHA-256 of the rest of ``stream``, in hex."""
    sha256 = hashlib.sha256()
    while block := stream.read(CHUNK):
        sha256.update(block)
    return sha256.hexdigest()
