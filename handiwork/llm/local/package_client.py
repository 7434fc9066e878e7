"""The package client of this environment, which fetches published packages."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

_PIP = ("install", "--quiet", "--no-compile", "--no-input")


def package_client() -> list[str]:
    """Return the command that installs packages: this environment's own pip, else uv, else any pip; [] without any.

    It asks for no password: an index that wants one is an error.
    """
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip", *_PIP]
    if uv := shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv"):
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    if pip := shutil.which("pip3") or shutil.which("pip"):
        return [pip, *_PIP]
    return []
