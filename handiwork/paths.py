"""Where Handiwork keeps things on this machine. Nothing is made here; who writes makes the folder."""

from __future__ import annotations

import os
from pathlib import Path


def data_dir() -> Path:
    """Sessions, their logs and files: ``HANDIWORK_DATA``, else handiwork below the user's data folder."""
    if chosen := os.environ.get("HANDIWORK_DATA"):
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "handiwork"


def cache_dir() -> Path:
    """What can be fetched or made again, like model weights: ``HANDIWORK_CACHE``, else below the user's cache."""
    if chosen := os.environ.get("HANDIWORK_CACHE"):
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "handiwork"


def runtime_dir() -> Path:
    """Sockets of what runs now; short, because a socket's path may have 107 bytes, and private to the user."""
    if (chosen := os.environ.get("XDG_RUNTIME_DIR")) and len(chosen) < 60:
        return Path(chosen) / "hw"
    return Path(f"/tmp/hw-{os.getuid()}")
