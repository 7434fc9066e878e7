"""Runs git such that neither a repository's settings nor the environment make it start other programs."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from handiwork.errors import WorkspaceError

_QUIET = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "log.showSignature=false"),
)


_PROXIES = tuple(f"{name}_proxy" for name in ("http", "https", "all", "no"))
"""Variables by which git finds its proxy; programs take them in either case."""

_CHANGING = frozenset({"fast-import", "fetch", "update-ref"})
"""Commands that change references, for which git runs hooks."""

_HOOK = re.compile(r"(hook\..+)\.(?:command|event)", re.DOTALL)
"""Settings of a hook, which git knows since 2.54; core.hooksPath does not turn it off."""


def run_git(
    git_dir: Path, *arguments: str, protocols: str = "none", stdin: IO[bytes] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git with the user's own settings on a repository that only the user or the platform writes to.

    git looks for no other repository, runs no hook and no monitor, and speaks only ``protocols``, so it fetches no
    missing objects. It reads the file ``stdin``, or nothing. Raises WorkspaceError if git is not installed.
    """
    environment = _environment(git_dir) | {"GIT_ALLOW_PROTOCOL": protocols}
    if not _CHANGING.isdisjoint(arguments):
        environment |= _without_programs(git_dir, environment)
    return _run(["git", *_QUIET, *arguments], git_dir, environment, stdin=stdin)


def run_git_alone(
    private: Path,
    *arguments: str,
    open_files: Collection[int] = (),
    protocols: str = "none",
    settings: Sequence[tuple[str, str]] = (),
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a private directory, outside any other repository, without the user's or the system's settings.

    git inherits the descriptors ``open_files``, speaks only ``protocols``, and gets ``settings`` through its
    environment, which other users cannot read, so a value may be a secret. Raises WorkspaceError if git is not
    installed.
    """
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(private.parent),
        "GIT_ALLOW_PROTOCOL": protocols,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (name, value) in enumerate(settings):
        environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    if protocols != "none":
        environment |= {name: value for name, value in os.environ.items() if name.lower() in _PROXIES}
    return _run(["git", "-c", "core.attributesFile=/dev/null", *_QUIET, *arguments], private, environment, open_files)


def merge_texts(mine: bytes, base: bytes, theirs: bytes) -> subprocess.CompletedProcess[bytes]:
    """Merge three versions of a file; the exit code is the number of conflicts, above 127 for an error.

    The versions are in memory only, so a killed process leaves no files behind. Raises WorkspaceError if git is not
    installed.
    """
    with ExitStack() as stack:
        files: list[int] = []
        for version in (mine, base, theirs):
            file = stack.enter_context(open(os.memfd_create("merge"), "wb"))
            file.write(version)
            file.flush()
            files.append(file.fileno())
        names = (f"self/fd/{file}" for file in files)
        return run_git_alone(Path("/proc"), "merge-file", "--quiet", "--stdout", *names, open_files=files)


def user_excludes() -> Path | None:
    """Return the path of the user's global ignore file. Raises WorkspaceError if git is not installed."""
    command = ["git", "config", "--get", "--type=path", "core.excludesFile"]
    answer = _run(command, Path("/"), _environment(Path(os.devnull)))
    if answer.returncode == 0:
        return Path("/", os.fsdecode(answer.stdout.removesuffix(b"\n"))).resolve()
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(settings, "git/ignore").resolve()


def _environment(git_dir: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    fixed = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    return inherited | fixed | {"GIT_DIR": str(git_dir)}


def _without_programs(git_dir: Path, environment: dict[str, str]) -> dict[str, str]:
    """Return the variables that turn off the hooks and the command for alternates that settings name."""
    listed = _run(["git", *_QUIET, "config", "--null", "--name-only", "--list"], git_dir, environment)
    names = os.fsdecode(listed.stdout).split("\0")
    settings = {f"{match[1]}.enabled": "false" for name in names if (match := _HOOK.fullmatch(name))}
    if "core.alternaterefscommand" in names:
        settings["core.alternateRefsCommand"] = "true"  # a program that lists no references
    # Variables, since "-c" takes the first "=" of a hook's name for the end of the setting's.
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def _run(
    command: list[str],
    cwd: Path,
    environment: dict[str, str],
    open_files: Collection[int] = (),
    stdin: IO[bytes] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            stdin=stdin or subprocess.DEVNULL,
            capture_output=True,
            check=False,
            pass_fds=open_files,
        )
    except FileNotFoundError as error:
        if error.filename == "git":
            raise WorkspaceError("git is not installed; install it and try again") from error
        raise
