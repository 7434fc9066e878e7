"""Running git so that neither a repository's settings nor the environment make it start other programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from handiwork.sandbox.safe_open import WorkspaceError

_QUIET = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    # The user named this directory, so that it belongs to another account is no reason to refuse it.
    *("-c", "safe.directory=*"),
)


def run_git(
    cwd: Path, *arguments: str, stdin: bytes = b"", ceiling: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a repository of the user's, with the user's own settings but no hooks and no fsmonitor.

    A repository above ``ceiling`` is not looked for. Raises WorkspaceError when git is not installed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    if ceiling:
        environment["GIT_CEILING_DIRECTORIES"] = str(ceiling)
    return _run(["git", *_QUIET, *arguments], cwd, environment, stdin)


def run_git_alone(private: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git on plain files in a private directory, outside any repository and with nobody's settings.

    Raises WorkspaceError when git is not installed.
    """
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(private.parent),
    }
    return _run(["git", "-c", "core.attributesFile=/dev/null", *_QUIET, *arguments], private, environment, b"")


def _run(
    command: list[str], cwd: Path, environment: dict[str, str], stdin: bytes
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, cwd=cwd, env=environment, input=stdin, capture_output=True, check=False)
    except FileNotFoundError as error:
        if error.filename == "git":
            raise WorkspaceError("git is not installed; install it and try again") from error
        raise
