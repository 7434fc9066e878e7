"""Changes as a patch in git's format and as line counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from handiwork.errors import WorkspaceError
from handiwork.workspace.changes import Change, Side
from handiwork.workspace.files.names import quoted
from handiwork.workspace.files.temp_dir import temporary_dir
from handiwork.workspace.git.command import run_git_alone

_HEADER = re.compile(rb"^diff --git .*?(\d+)\n(?:(?![@d]).*\n)*", re.MULTILINE)

_HUNK = re.compile(r"^(?=@@ )", re.MULTILINE)


def unified_diff(changes: Sequence[Change]) -> str:
    """Return a patch for ``git apply``; a binary file appears only as a line with its sizes in bytes.

    Raises WorkspaceError if a file can no longer be read.
    """
    hunks = _hunks(changes)
    return "".join(_patch(change, hunks[at]) for at, change in enumerate(changes))


def without_hunk(change: Change, hunk: str) -> bytes:
    """Return the content of a modified text file with one hunk, given as its patch has it, reverted.

    Raises WorkspaceError if the change is not a modified text, or no longer has the hunk.
    """
    if change.kind != "modified" or change.binary or change.new is None:
        raise WorkspaceError(f"{quoted(change.path)} is {change.kind}, so it has no hunk to take back")
    if hunk not in _HUNK.split(_hunks([change])[0][0]):
        raise WorkspaceError(f"{quoted(change.path)} has changed; look at the changes again")
    with temporary_dir() as private:
        (private / "file").write_bytes(change.new.read())
        (private / "patch").write_bytes(f"--- file\n+++ file\n{hunk}".encode())
        answer = run_git_alone(private, "apply", "--reverse", "-p0", "--whitespace=nowarn", "patch")
        if answer.returncode != 0:
            raise WorkspaceError(f"git cannot take the hunk back: {answer.stderr.decode(errors='replace').strip()}")
        return (private / "file").read_bytes()


def diffstat(changes: Sequence[Change]) -> list[tuple[str, int, int]]:
    """Return path, added lines and deleted lines of each change; a binary file counts as 0 and 0."""
    stat: list[tuple[str, int, int]] = []
    for change, (removed, added) in zip(changes, _hunks(changes), strict=True):
        lines = [*removed.split("\n"), *(added or "").split("\n")]
        plus, minus = (sum(line.startswith(sign) for line in lines) for sign in "+-")
        stat.append((change.path, plus, minus))
    return stat


def _hunks(changes: Sequence[Change]) -> list[tuple[str, str | None]]:
    """Return the hunks of each change; for a changed type, those of the deletion and those of the addition."""
    jobs: list[tuple[Side | None, Side | None]] = []
    first: list[int | None] = []
    for change in changes:
        first.append(None if change.binary else len(jobs))
        if change.binary:
            continue
        if change.kind == "type":
            jobs += [(change.old, None), (None, change.new)]
        else:
            jobs.append((change.old, change.new))
    texts = _compare(jobs)
    hunks: list[tuple[str, str | None]] = []
    for change, at in zip(changes, first, strict=True):
        if at is None:
            hunks.append(("", None))
        else:
            hunks.append((texts[at], texts[at + 1] if change.kind == "type" else None))
    return hunks


def _compare(jobs: Sequence[tuple[Side | None, Side | None]]) -> list[str]:
    """Compare numbered plain copies in one git process, which no file of the workspace can configure."""
    if not jobs:
        return []
    texts = [""] * len(jobs)
    with temporary_dir() as private:
        for at, job in enumerate(jobs):
            for folder, side in zip("ab", job, strict=True):
                (private / folder).mkdir(exist_ok=True)
                (private / folder / str(at)).write_bytes(side.read() if side else b"")
        options = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--no-prefix", "--text")
        answer = run_git_alone(private, "diff", "--no-index", *options, "--unified=3", "a", "b")
        if answer.returncode not in (0, 1):
            raise WorkspaceError(f"git cannot compare: {answer.stderr.decode(errors='replace').strip()}")
        # No line of a hunk begins with a letter, so "diff" at the start of a line is git's header.
        pieces = _HEADER.split(answer.stdout)[1:]
        for at, hunks in zip(pieces[::2], pieces[1::2], strict=True):
            # git may cut the function name after "@@" inside a character; everything else is UTF-8.
            texts[int(at)] = hunks.decode(errors="replace")
    return texts


def _patch(change: Change, hunks: tuple[str, str | None]) -> str:
    if change.binary:
        sizes = [f"{side.size} bytes" if side else "none" for side in (change.old, change.new)]
        return f"Binary file {quoted(change.path)} is {change.kind}: {' -> '.join(sizes)}\n"
    if hunks[1] is None:
        return "".join(_file_patch(change.path, change.old, change.new, hunks[0]))
    return "".join(
        [
            *_file_patch(change.path, change.old, None, hunks[0]),
            *_file_patch(change.path, None, change.new, hunks[1]),
        ]
    )


def _file_patch(path: str, old: Side | None, new: Side | None, hunks: str) -> Iterator[str]:
    a, b = quoted(f"a/{path}"), quoted(f"b/{path}")
    yield f"diff --git {a} {b}\n"
    if old and not new:
        yield f"deleted file mode {old.git_mode}\n"
    elif new and not old:
        yield f"new file mode {new.git_mode}\n"
    elif old and new and old.git_mode != new.git_mode:
        yield f"old mode {old.git_mode}\nnew mode {new.git_mode}\n"
    if hunks:
        # git ends a name that has a space with a tab, so that parsers expecting a timestamp find the end.
        end = "\t\n" if " " in path else "\n"
        yield f"--- {a if old else '/dev/null'}{end if old else chr(10)}"
        yield f"+++ {b if new else '/dev/null'}{end if new else chr(10)}"
        yield hunks
