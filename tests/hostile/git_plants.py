"""Repositories that run a program when their user's git looks at them."""

from __future__ import annotations

import os
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.sandbox.helpers import git

EVIL = "evil.sh"

_PARTIAL = """
mkdir -p {folder}/sub && cd {folder} && git init -q . && touch sub/file
git update-index --add --cacheinfo 100644,{missing},sub/.gitignore
git update-index --skip-worktree sub/.gitignore
git config core.repositoryFormatVersion 1
git config extensions.partialClone origin
git config remote.origin.promisor true
git config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'
{transport}
"""
TRANSPORTS = {
    "ext": "git config remote.origin.url 'ext::{evil}'; git config protocol.ext.allow always",
    "uploadpack": "git config remote.origin.url .; git config remote.origin.uploadpack {evil}",
    "sshCommand": "git config remote.origin.url ssh://localhost/x; git config core.sshCommand {evil}",
}


def partial_clone(folder: str, transport: str, evil: str) -> str:
    """Return a script that makes a partial clone, whose ``.gitignore`` git must fetch by running ``evil``."""
    return _PARTIAL.format(folder=folder, missing="1" * 40, transport=TRANSPORTS[transport].format(evil=evil))


def make_evil(folder: Path, witness: Path) -> Path:
    """Make a program in the folder that leaves a file outside of it."""
    evil = folder / EVIL
    evil.write_text(f"#!/bin/sh\npwd >> {shlex.quote(str(witness))} 2>/dev/null\nexit 1\n")
    evil.chmod(0o755)
    return evil


def run_script(folder: Path, script: str) -> None:
    subprocess.run(["sh", "-ec", script], cwd=folder, check=True, capture_output=True)


def use_git_everywhere(project: Path) -> None:
    """Do what users, their prompts and their editors do, wherever git finds a repository."""
    folders = [project, *(Path(here) for here, names, _ in os.walk(project) if {".git", "objects"} & {*names})]
    folders += [path.parent for path in project.rglob(".git") if not path.is_dir() or path.is_symlink()]
    for folder in folders:
        commands = (("status",), ("add", "-A"), ("commit", "-qm", "by the user", "--allow-empty"))
        for command in commands if ".git" not in folder.parts else ():
            with suppress(subprocess.CalledProcessError):
                git(folder, *command)
