"""Import of a session's commits into the user's repository."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from handiwork.errors import WorkspaceError
from handiwork.workspace.git.command import run_git, run_git_alone
from handiwork.workspace.git.repository import Repository, read_regular, repository_at

_LARGEST_SHALLOW = 1 << 24
_CHECKED = ("-c", "transfer.fsckObjects=true", "-c", "fetch.fsckObjects=true")
_FETCH = ("fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--quiet")


def import_commits(target_repo: Path, bundle_file: Path, session_id: str) -> str | None:
    """Fetch a bundle's HEAD into the branch ``handiwork/ID``, checking every object, and return the branch's name.

    Returns None if the repository's HEAD already contains these commits. Raises WorkspaceError if the bundle is bad or
    the branch has diverged.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", session_id):
        raise WorkspaceError(f"{session_id!r} cannot be part of a branch's name; use letters and digits")
    bundle = bundle_file.absolute()
    if bundle.is_symlink() or not bundle.is_file():
        raise WorkspaceError(f"{bundle} is not a bundle of commits")
    target = repository_at(target_repo)
    if target is None:
        raise WorkspaceError(f"{target_repo} is not a git repository, so the commits stay in the session")
    heads = run_git(target.git_dir, "bundle", "list-heads", str(bundle), "HEAD")
    if heads.returncode or not heads.stdout:
        raise WorkspaceError(f"{bundle} is not a bundle of commits with a HEAD: {_text(heads.stderr)}")
    commit = heads.stdout.split()[0].decode()
    if run_git(target.git_dir, "merge-base", "--is-ancestor", commit, "HEAD").returncode == 0:
        return None
    branch = f"handiwork/{session_id}"
    with tempfile.TemporaryDirectory(prefix="handiwork-commits-", dir=bundle.parent) as name:
        # Older versions of git check objects when fetching from a repository, but not from a bundle.
        intermediate = Path(name)
        _open_bundle(target, intermediate, bundle)
        session = f"refs/heads/session:refs/heads/{branch}"
        result = run_git(target.git_dir, *_CHECKED, *_FETCH, name, session, protocols="file")
    if result.returncode:
        raise WorkspaceError(
            f"the session's commits were not taken over as {branch}: {_text(result.stderr)};"
            " if that branch exists, rename or delete it, else ask for a new bundle"
        )
    return branch


def _open_bundle(target: Repository, intermediate: Path, bundle: Path) -> None:
    """Unpack a bundle into its own repository, which borrows the bundle's prerequisites from the user's repository."""
    make_borrower(intermediate, target)
    result = run_git(intermediate, *_CHECKED, *_FETCH, str(bundle), "HEAD:refs/heads/session", protocols="file")
    if result.returncode:
        raise WorkspaceError(f"{bundle} cannot be read: {_text(result.stderr)}; ask for a new bundle")


def make_borrower(folder: Path, lender: Repository) -> None:
    """Make a bare repository that has the objects of another one, and its boundary if that one is a shallow clone."""
    name = (lender.settings.get("extensions.objectformat") or "").lower()
    object_format = [f"--object-format={name}"] if name else []  # versions of git before 2.29 know no other
    run_git_alone(folder, "init", "--quiet", "--bare", "--template=", *object_format)
    alternates = folder / "objects/info/alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_bytes(os.fsencode(lender.common / "objects") + b"\n")
    if (shallow := read_regular(lender.common, "shallow", _LARGEST_SHALLOW)) is not None:
        (folder / "shallow").write_bytes(shallow)


def _text(output: bytes) -> str:
    return output.decode(errors="replace").strip()
