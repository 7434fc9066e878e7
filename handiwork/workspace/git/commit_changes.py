"""A session's changes as a commit in the user's repository, and its branch; index and files stay as they are."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path, PurePosixPath
from typing import IO
from uuid import uuid4

from handiwork.errors import WorkspaceError
from handiwork.workspace.apply import Applied, ConflictError, apply
from handiwork.workspace.changes import TEXT_LIMIT, Change, Side, same_content, side_at
from handiwork.workspace.files.names import quoted
from handiwork.workspace.files.temp_dir import temporary_dir
from handiwork.workspace.git.command import run_git
from handiwork.workspace.git.repository import is_true, repository_at

_BATCH = 500
"""Paths in one command line."""

_ATTRIBUTES = ".gitattributes"

_CONVERSIONS = ("filter", "working-tree-encoding")
"""Attributes of files that git stores with another content."""

_SUBMODULE = "160000"
"""The mode of a submodule in a tree."""


class CommitError(WorkspaceError):
    """The changes cannot be committed."""


class ForeignCommitsError(CommitError):
    """The branch for the session's changes has other commits, which the changes would undo."""


def commit_changes(
    workspace: Path, changes: Sequence[Change], parent: str, message: str, *, merge: bool = True
) -> tuple[str | None, Applied]:
    """Commit the changes on top of ``parent``; return the commit, None if it has them all, and the changes made.

    The changes are merged with the parent as ``apply`` merges them with files; without ``merge`` the session began
    before the parent, which is a commit of its own, and its versions replace the parent's. No reference keeps the
    commit: ``name_commit`` makes a branch. Raises CommitError outside of a repository, and for paths in a submodule
    or with a filter; ConflictError; and WorkspaceError.
    """
    git_dir = _git_dir(workspace)
    commit = _resolve(git_dir, f"{parent}^{{commit}}")
    if commit:
        _refuse_submodules(git_dir, commit, changes)
    with temporary_dir() as private:
        folder = private / "files"
        folder.mkdir()
        present = _export(git_dir, commit, [change.path for change in changes], folder) if commit else set[str]()
        attributes = _attributes(git_dir, commit, changes, private / "attributes")
        _refuse_filters(changes, folder, attributes)
        changes = _with_stored_line_ends(git_dir, changes, folder, attributes)
        # A file that git does not track is not in the parent, even if the session's base has it.
        relative = [change if change.path in present else replace(change, old=None) for change in changes]
        if not merge:
            relative = [replace(change, old=side_at(folder, change.path)) for change in changes]
            if _setting(git_dir, "core.fileMode", "--type=bool") == "false":
                relative = [_with_old_mode(change) for change in relative]
        try:
            applied = apply(relative, folder)
        except ConflictError as error:
            raise ConflictError(error.conflicts, f"no branch was made from {parent}") from None
        if not applied.written and not applied.deleted:
            return None, applied
        return _commit(
            git_dir, [commit] if commit else [], message, lambda file: _files(file, folder, applied)
        ), applied


def name_commit(workspace: Path, branch: str, commit: str) -> str:
    """Return a branch with the commit or its like: one that an earlier call made, or a new one.

    The new one is ``branch``, with a number if there is another one of that name. Raises CommitError.
    """
    git_dir = _git_dir(workspace)
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


def branches_like(workspace: Path, branch: str) -> list[str]:
    """Return the names that ``name_commit`` gave, the newest first, and finally ``branch``."""
    listed = _git(_git_dir(workspace), "for-each-ref", "--format=%(refname)", f"refs/heads/{branch}-*").decode()
    numbers = [name.removeprefix(f"refs/heads/{branch}-") for name in listed.split()]
    found = sorted((int(number) for number in numbers if number.isascii() and number.isdecimal()), reverse=True)
    return [*(f"{branch}-{number}" for number in found), branch]


def commit_after(workspace: Path, head: str, commit: str, mark: str) -> str:
    """Return a commit with the files of ``commit`` whose history has ``head``, the tip of an earlier branch.

    It is one of the two if that fits, or else a new one with the message of ``commit`` on top of ``head``, with a
    second parent if ``head`` lacks the commit that ``commit`` began from. Messages of the session's own commits have
    the line ``mark``. Raises ForeignCommitsError if ``head`` has others that ``commit`` lacks, or is not in the
    repository.
    """
    git_dir = _git_dir(workspace)
    if not _resolve(git_dir, f"{head}^{{commit}}"):
        raise ForeignCommitsError(f"{workspace} does not have the commit {head}")
    others = _revisions(git_dir, head, f"^{commit}", "--invert-grep", f"--grep=^{mark}$")
    if others:
        raise ForeignCommitsError(f"the commit {others[0]} is not of the session")
    if not _revisions(git_dir, head, f"^{commit}"):
        return commit
    message = _git(git_dir, "log", "-1", "--format=%B", commit, "--").decode(errors="replace")
    begin = _resolve(git_dir, f"{commit}^") if mark in message.splitlines() else commit
    tree = _resolve(git_dir, f"{commit}^{{tree}}")
    joins = [begin] if begin and _revisions(git_dir, begin, f"^{head}", "-1") else []
    if not joins and tree == _resolve(git_dir, f"{head}^{{tree}}"):
        return head
    root = b'M 040000 %s ""\n' % tree.encode()
    return _commit(git_dir, [head, *joins], message, lambda file: file.write(root))


def advance_branch(workspace: Path, branch: str, old: str, new: str) -> None:
    """Move the branch from ``old`` to ``new``, unless it is at another commit or checked out."""
    git_dir, reference = _git_dir(workspace), f"refs/heads/{branch}"
    if not _git(git_dir, "for-each-ref", "--format=%(worktreepath)", reference).strip():
        run_git(git_dir, "update-ref", reference, new, old)


def _with_old_mode(change: Change) -> Change:
    """Return the change of a file with its old mode, as the user's file system keeps none."""
    old, new = change.old, change.new
    if old is None or new is None or old.is_link or new.is_link:
        return change
    return replace(change, new=replace(new, mode=old.mode))


def _setting(git_dir: Path, name: str, *options: str) -> str:
    return run_git(git_dir, "config", *options, "--get", name).stdout.decode(errors="replace").strip()


def _git_dir(workspace: Path) -> Path:
    repository = repository_at(workspace)
    if repository is None:
        raise CommitError(f"{workspace} is not a git repository: apply the changes, or download them as a patch")
    return repository.git_dir


def _revisions(git_dir: Path, *arguments: str) -> list[str]:
    return _git(git_dir, "rev-list", *arguments, "--").decode().split()


def _refuse_submodules(git_dir: Path, commit: str, changes: Iterable[Change]) -> None:
    """Raise CommitError if the commit has a submodule at or above the path of a change."""
    files = [PurePosixPath(change.path) for change in changes]
    paths = {str(path) for file in files for path in (file, *file.parents)} - {"."}
    for path, mode, _ in _entries(git_dir, commit, sorted(paths)):
        if mode == _SUBMODULE:
            raise CommitError(
                f"{quoted(path)} is a submodule, whose files are in a repository of their own, so no branch was made:"
                " apply the changes and commit them there"
            )


def _export(git_dir: Path, commit: str, paths: Sequence[str], folder: Path) -> set[str]:
    """Write the commit's versions of ``paths`` below ``folder``; return the paths that it has."""
    entries = [entry for entry in _entries(git_dir, commit, paths) if entry[1] != _SUBMODULE]
    for (path, mode, _), content in zip(entries, _blobs(git_dir, [entry[2] for entry in entries]), strict=True):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if mode == "120000":
            file.symlink_to(content.decode(errors="surrogateescape"))
        else:
            file.write_bytes(content)
            file.chmod(0o755 if mode == "100755" else 0o644)
    return {entry[0] for entry in entries}


def _entries(git_dir: Path, commit: str, paths: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield path, mode and digest of the files, links and submodules that the commit has at ``paths``."""
    wanted = set(paths)
    for at in range(0, len(paths), _BATCH):
        batch = paths[at : at + _BATCH]
        listed = _git(git_dir, "--literal-pathspecs", "ls-tree", "--full-tree", "-z", commit, "--", *batch)
        for line in filter(None, listed.split(b"\0")):
            attributes, _, name = line.partition(b"\t")
            mode, kind, digest = attributes.decode().split()
            path = name.decode(errors="surrogateescape")
            # Of a directory and a path in it, git lists the whole directory.
            if kind != "tree" and path in wanted:
                yield path, mode, digest


def _refuse_filters(changes: Iterable[Change], stored: Path, attributes: Mapping[str, Mapping[str, str]]) -> None:
    """Raise CommitError if the parent, whose versions are in ``stored``, lacks a change of a converted file.

    git stores another content for such a file: the output of a filter's command, or UTF-8 for another encoding.
    """
    for change in changes:
        is_file = any(side and not side.is_link for side in (change.old, change.new))
        values = ((kind, attributes[change.path][kind]) for kind in _CONVERSIONS)
        found = [f"{kind} {quoted(name)}" for kind, name in values if name not in ("unspecified", "unset", "set")]
        if found and is_file and not same_content(side_at(stored, change.path), change.new):
            raise CommitError(
                f"{quoted(change.path)} is stored through git's {found[0]}, which Handiwork does not run, so no branch"
                " was made: apply the changes and commit them yourself"
            )


def _with_stored_line_ends(
    git_dir: Path, changes: Sequence[Change], stored: Path, attributes: Mapping[str, Mapping[str, str]]
) -> list[Change]:
    """Return the changes with "\\n" for the "\\r\\n" that git would replace in a commit of the files.

    The parent's versions are in ``stored``: one with "\\r\\n" shows that git stores the file as it is. One without
    shows the opposite if every line of the session's base ends with "\\r\\n", even if other settings of git, such as
    those of Windows, made it so.
    """
    candidates: dict[str, bool] = {}
    for change in changes:
        texts = [text for side in (change.old, change.new) if side and (text := _text(side)) is not None]
        parent = side_at(stored, change.path)
        if any(b"\r\n" in text for text in texts) and not (parent and b"\r\n" in parent.read()):
            old = _text(change.old) if change.old and parent else None
            candidates[change.path] = bool(old) and 0 < old.count(b"\n") == old.count(b"\r\n")
    if not candidates:
        return list(changes)
    converted = {path for path, is_converted in candidates.items() if is_converted}
    converted |= _converted_by_git(git_dir, {path: attributes[path] for path in candidates})
    return [
        replace(change, old=_with_lf(change.old), new=_with_lf(change.new)) if change.path in converted else change
        for change in changes
    ]


def _text(side: Side) -> bytes | None:
    """Return the content if git could convert its line ends: it has no NUL, and no "\\r" without "\\n"."""
    if side.is_link or side.size > TEXT_LIMIT:
        return None
    content = side.read()
    return None if b"\0" in content or content.count(b"\r") != content.count(b"\r\n") else content


def _with_lf(side: Side | None) -> Side | None:
    content = _text(side) if side else None
    if side is None or content is None:
        return side
    content = content.replace(b"\r\n", b"\n")
    return replace(side, size=len(content), content=content)


def _attributes(git_dir: Path, commit: str, changes: Sequence[Change], folder: Path) -> dict[str, dict[str, str]]:
    """Return the attributes of each change's path that decide how git stores a file.

    They are the parent's with the changes to them, which are written below ``folder``, and the user's own.
    """
    _export_attributes(git_dir, commit, changes, folder)
    with tempfile.TemporaryFile() as wanted:
        wanted.write(b"".join(change.path.encode(errors="surrogateescape") + b"\0" for change in changes))
        wanted.seek(0)
        asked = ("check-attr", "-z", "--stdin", "text", "crlf", "eol", *_CONVERSIONS)
        fields = _git(git_dir, f"--work-tree={folder}", *asked, stdin=wanted).decode(errors="surrogateescape")
    values: defaultdict[str, dict[str, str]] = defaultdict(dict)
    parts = iter(fields.split("\0")[:-1])
    for path, name, value in zip(parts, parts, parts, strict=True):
        values[path][name] = value
    return values


def _export_attributes(git_dir: Path, commit: str, changes: Sequence[Change], folder: Path) -> None:
    """Write the parent's attributes for the changes, with the changes to them, below ``folder``, and nothing else."""
    folder.mkdir()
    directories = {directory for change in changes for directory in PurePosixPath(change.path).parents}
    names = {str(directory / _ATTRIBUTES) for directory in directories if _ATTRIBUTES not in directory.parts}
    if commit:
        _export(git_dir, commit, sorted(names), folder)
    for change in changes:
        if change.path in names:
            file = folder / change.path
            file.unlink(missing_ok=True)
            if change.new and not change.new.is_link:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(change.new.read())


def _converted_by_git(git_dir: Path, attributes: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Return those paths, all of texts and with their attributes, whose line ends git converts for a commit."""
    setting = _setting(git_dir, "core.autocrlf")
    by_default = setting.lower() == "input" or is_true(setting)
    converted: set[str] = set()
    for path, values in attributes.items():
        # "crlf" is the old name of "text".
        text = values["crlf"] if values["text"] == "unspecified" else values["text"]
        if text in ("set", "auto", "input") or (text != "unset" and (by_default or values["eol"] in ("lf", "crlf"))):
            converted.add(path)
    return converted


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


def _commit(git_dir: Path, parents: Sequence[str], message: str, write: Callable[[IO[bytes]], object]) -> str:
    """Make a commit without a reference; ``write`` writes the changes to its first parent for git fast-import."""
    reference, text = f"refs/handiwork/{uuid4().hex}", message.encode(errors="replace")
    with temporary_dir() as private, (private / "stream").open("xb+") as stream:
        stream.write(b"commit %s\ncommitter %s\n" % (reference.encode(), _identity(git_dir)))
        stream.write(b"data %d\n%s\n" % (len(text), text))
        for word, parent in zip(("from", "merge"), parents, strict=False):
            stream.write(f"{word} {parent}\n".encode())
        write(stream)
        stream.seek(0)
        _git(git_dir, "fast-import", "--quiet", stdin=stream)
    try:
        return _resolve(git_dir, reference)
    finally:
        run_git(git_dir, "update-ref", "-d", reference)


def _files(stream: IO[bytes], folder: Path, applied: Applied) -> None:
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
    """Return the object that a name refers to; "" if there is none."""
    return run_git(git_dir, "rev-parse", "--quiet", "--verify", name).stdout.decode().strip()


def _git(git_dir: Path, *arguments: str, stdin: IO[bytes] | None = None) -> bytes:
    answer = run_git(git_dir, *arguments, stdin=stdin)
    if answer.returncode:
        problem = answer.stderr.decode(errors="replace").strip()
        raise CommitError(f"git {arguments[0].strip('-')} failed in {git_dir}, and no branch was made: {problem}")
    return answer.stdout
