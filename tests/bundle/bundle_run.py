from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Run(Protocol):
    """Runs a command in a sandbox that holds nothing but the bundle."""

    def __call__(
        self, *command: str, env: dict[str, str] | None = None, mounts: Sequence[tuple[Path, str]] = ()
    ) -> subprocess.CompletedProcess[str]: ...
