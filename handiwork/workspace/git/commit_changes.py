"""A session's changes as a commit in the user's repository, on a new branch; index and files stay as they are."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import IO

from handiwork.errors import WorkspaceError
from handiwork.workspace.apply import Applied, ConflictError, apply
from handiwork.workspace.changes import Change, side_at
from handiwork.workspace.files.temp_dir import temporary_dir
from handiwork.workspace.git.command import run_git
from handiwork.workspace.git.repository import repository_at

_BATCH = 500
"""Paths in one command line."""


class CommitError(WorkspaceError):
    """The changes cannot be committed."""


def commit_changes(
    workspace: Path, changes: Sequence[Change], branch: str, parent: str, message: str, *, merge: bool = True
) -> tuple[str | None, Applied]:
    """Commit the changes on top of ``parent``; return the branch, None if the parent has them all, and what changed.

    The changes are merged with the parent as ``apply`` merges them with files; without ``merge`` the session began
    before the parent, which is a commit of its own, and its versions replace the parent's. The branch is ``branch``,
    with a number if there is another one of that name; a branch with the same commit is returned again. Raises
    CommitError outside of a repository, ConflictError, and WorkspaceError.
    """
    repository = repository_at(workspace)
    if repository is None:
        raise CommitError(f"{workspace} is not a git repository: apply the changes, or download them as a patch")
    git_dir = repository.git_dir
    commit = _resolve(git_dir, f"{parent}^{{commit}}")
    with temporary_dir() as private:
        folder = private / "files"
        folder.mkdir()
        present = _export(git_dir, commit, [change.path for change in changes], folder) if commit else set[str]()
        # A file that git does not track is not in the parent, whatever the session's base has.
        relative = [change if change.path in present else replace(change, old=None) for change in changes]
        if not merge:
            relative = [replace(change, old=side_at(folder, change.path)) for change in changes]
        try:
            applied = apply(relative, folder)
        except ConflictError as error:
            raise ConflictError(error.conflicts, f"no branch was made from {parent}") from None
        if not applied.written and not applied.deleted:
            return None, applied
        made = f"refs/handiwork/{branch.rpartition('/')[2]}"
        with (private / "stream").open("xb+") as stream:
            _write_stream(stream, made, _identity(git_dir), commit, message, folder, applied)
            stream.seek(0)
            _git(git_dir, "fast-import", "--quiet", "--force", stdin=stream)
    try:
        return _publish(git_dir, branch, _resolve(git_dir, made)), applied
    finally:
        run_git(git_dir, "update-ref", "-d", made)


def _publish(git_dir: Path, branch: str, commit: str) -> str:
    """Return a branch with the commit or its like: a new one, or the one that an earlier call made."""
    wanted = _resolve(git_dir, f"{commit}^{{tree}}"), _resolve(git_dir, f"{commit}^")
    for number in count(1):
        name = branch if number == 1 else f"{branch}-{number}"
        existing = _resolve(git_dir, f"refs/heads/{name}")
        if not existing:
            _git(git_dir, "update-ref", f"refs/heads/{name}", commit, "")
            return name
        if (_resolve(git_dir, f"{existing}^{{tree}}"), _resolve(git_dir, f"{existing}^")) == wanted:
            return name
    raise AssertionError


def _export(git_dir: Path, commit: str, paths: Sequence[str], folder: Path) -> set[str]:
    """Write the commit's versions of ``paths`` below ``folder``; return the paths that it has."""
    entries: list[tuple[str, str, str]] = []
    for at in range(0, len(paths), _BATCH):
        batch = paths[at : at + _BATCH]
        listed = _git(git_dir, "--literal-pathspecs", "ls-tree", "--full-tree", "-z", commit, "--", *batch)
        for line in filter(None, listed.split(b"\0")):
            attributes, _, path = line.partition(b"\t")
            mode, kind, digest = attributes.decode().split()
            if kind == "blob":
                entries.append((path.decode(errors="surrogateescape"), mode, digest))
    for (path, mode, _), content in zip(entries, _blobs(git_dir, [entry[2] for entry in entries]), strict=True):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if mode == "120000":
            file.symlink_to(content.decode(errors="surrogateescape"))
        else:
            file.write_bytes(content)
            file.chmod(0o755 if mode == "100755" else 0o644)
    return {entry[0] for entry in entries}


def _blobs(git_dir: Path, digests: Sequence[str]) -> Iterator[bytes]:
    with tempfile.TemporaryFile() as wanted:
        wanted.write("".join(f"{digest}\n" for digest in digests).encode())
        wanted.seek(0)
        output = _git(git_dir, "cat-file", "--batch", stdin=wanted)
    at = 0
    for digest in digests:
        end = output.index(b"\n", at)
        try:
            size = int(output[at:end].split()[2])
        except (IndexError, ValueError):
            raise CommitError(f"the repository lacks the object {digest}: fetch it and try again") from None
        yield output[end + 1 : end + 1 + size]
        at = end + size + 2


def _write_stream(
    stream: IO[bytes], reference: str, identity: bytes, parent: str, message: str, folder: Path, applied: Applied
) -> None:
    """Write the commit in the format of git fast-import."""
    text = message.encode(errors="replace")
    stream.write(b"commit %s\ncommitter %s\ndata %d\n%s\n" % (reference.encode(), identity, len(text), text))
    if parent:
        stream.write(b"from %s\n" % parent.encode())
    for path in applied.deleted:
        stream.write(b"D %s\n" % _quoted(path))
    for path in applied.written:
        side = side_at(folder, path)
        assert side is not None
        content = side.read()
        stream.write(b"M %s inline %s\ndata %d\n" % (side.git_mode.encode(), _quoted(path), len(content)))
        stream.write(content + b"\n")


def _quoted(path: str) -> bytes:
    return b'"%s"' % "".join(f"\\{byte:03o}" for byte in path.encode(errors="surrogateescape")).encode()


def _identity(git_dir: Path) -> bytes:
    """Return the user's name, address and the time, as in a commit; git may know no name."""
    answer = run_git(git_dir, "var", "GIT_COMMITTER_IDENT")
    return answer.stdout.strip() if answer.returncode == 0 else b"Handiwork <> %d +0000" % time.time()


def _resolve(git_dir: Path, name: str) -> str:
    """Return the object that a name stands for; "" if there is none."""
    return run_git(git_dir, "rev-parse", "--quiet", "--verify", name).stdout.decode().strip()


def _git(git_dir: Path, *arguments: str, stdin: IO[bytes] | None = None) -> bytes:
    answer = run_git(git_dir, *arguments, stdin=stdin)
    if answer.returncode:
        problem = answer.stderr.decode(errors="replace").strip()
        raise CommitError(f"git {arguments[0].strip('-')} failed in {git_dir}, and no branch was made: {problem}")
    return answer.stdout
