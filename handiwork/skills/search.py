"""Searches in files and for files, with ripgrep where it is there. Hidden paths and those of tools are left out."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator

from .files import absolute, decoded, read_text_bytes
from .tools import SkillError, ripgrep
from .viewer import open_path

MAX_FILES, MAX_MATCHES, MAX_FOUND = 100, 100, 100
"""Files with a match in a directory, matching lines of one file, and files found by name that are shown."""

_LEFT_OUT = ("node_modules", "__pycache__")
"""Directories that are never searched, besides hidden ones."""

_WIDEST = 300  # characters of a matching line
_OUTPUT_LIMIT = 64 << 20  # bytes of ripgrep's output
_CHUNK = 1 << 16
_SNIFFED = 8192


def search_dir(search_term: str, dir_path: str = "./") -> None:
    """Search a text in all files of the directory and below, and show the matching lines.

    Args:
        search_term: The exact text, no pattern, within one line.
        dir_path: The directory, the current one if none is given.
    """
    directory = _directory(dir_path)
    _check_term(search_term)
    command = ripgrep()
    matches = _grep(command, search_term, directory) if command else _scan(search_term, directory)
    found: list[tuple[str, int, str]] = []
    files: Counter[str] = Counter()
    for path, number, line in matches:
        files[path] += 1
        if len(files) > MAX_FILES:
            raise SkillError(
                f'More than {MAX_FILES} files in {directory} have "{search_term}": narrow the search, with a longer '
                "text or a directory further down."
            )
        if files[path] <= MAX_MATCHES:
            found.append((path, number, line))
    if not found:
        print(f'No matches found for "{search_term}" in {directory}')
        return
    found.sort(key=lambda match: match[:2])
    print(f'[Found {sum(files.values())} matches for "{search_term}" in {directory}]')
    for path, number, line in found:
        print(f"{path} (Line {number}): {line}")
    left = sum(files.values()) - len(found)
    print(f"[{left} more matches are left out]" if left else f'[End of matches for "{search_term}" in {directory}]')


def search_file(search_term: str, file_path: str | None = None) -> None:
    """Search a text in a file and show the matching lines with their numbers.

    Args:
        search_term: The exact text, no pattern, within one line.
        file_path: The file, the open one if none is given.
    """
    path = open_path() if file_path is None else absolute(file_path)
    _check_term(search_term)
    wanted = search_term.encode("utf-8", "surrogatepass")
    lines = read_text_bytes(path).split(b"\n")
    matches = [(number, line) for number, line in enumerate(lines, 1) if wanted in line]
    if not matches:
        print(f'[No matches found for "{search_term}" in {path}]')
        return
    if len(matches) > MAX_MATCHES:
        raise SkillError(f'More than {MAX_MATCHES} lines of {path} have "{search_term}": narrow the search.')
    print(f'[Found {len(matches)} matches for "{search_term}" in {path}]')
    for number, line in matches:
        print(f"Line {number}: {_cut(decoded(line))}")
    print(f'[End of matches for "{search_term}" in {path}]')


def find_file(file_name: str, dir_path: str = "./") -> None:
    """Find files whose name has the text `file_name`, in the directory and below.

    Args:
        file_name: The name or a part of it, no pattern.
        dir_path: The directory, the current one if none is given.
    """
    directory = _directory(dir_path)
    _check_term(file_name)
    command = ripgrep()
    paths = _list(command, directory) if command else _walk(directory)
    found = sorted(path for path in paths if file_name in os.path.basename(path))
    if not found:
        print(f'[No matches found for "{file_name}" in {directory}]')
        return
    print(f'[Found {len(found)} matches for "{file_name}" in {directory}]')
    print("\n".join(found[:MAX_FOUND]))
    left = len(found) - MAX_FOUND
    print(f"[{left} more: narrow the search]" if left > 0 else f'[End of matches for "{file_name}" in {directory}]')


def _directory(path: str) -> str:
    directory = absolute(path)
    if not os.path.isdir(directory):
        raise SkillError(f"{directory} is no directory.")
    return directory


def _check_term(term: str) -> None:
    if not term or "\n" in term or "\0" in term:
        raise SkillError("The text to search must be one line, and not empty.")


def _cut(line: str) -> str:
    line = line.strip()
    return line if len(line) <= _WIDEST else f"{line[:_WIDEST]}..."


def _arguments() -> list[str]:
    """Return ripgrep's options: the search does not depend on the user's or the project's configuration."""
    left_out = [argument for name in _LEFT_OUT for argument in ("--glob", f"!**/{name}/**")]
    return ["--no-config", "--no-ignore", "--no-messages", "--color", "never", "--null", *left_out]


def _grep(command: Iterable[str], term: str, directory: str) -> Iterator[tuple[str, int, str]]:
    """Yield path, line number and line of ripgrep's matches."""
    options = ["--fixed-strings", "--no-heading", "--with-filename", "--line-number", "--encoding", "none"]
    options += ["--max-columns", "4096", "--max-columns-preview"]  # one long line must not end the search
    words = [*command, *_arguments(), *options, "-e", term, "--", directory]
    for line in _output(words, b"\n"):
        path, separator, rest = line.partition(b"\0")
        number, colon, text = rest.partition(b":")
        if separator and colon:  # others tell of binary files
            yield os.fsdecode(path), int(number), _cut(decoded(text))


def _list(command: Iterable[str], directory: str) -> Iterator[str]:
    for path in _output([*command, *_arguments(), "--files", "--", directory], b"\0"):
        yield os.fsdecode(path)


def _output(words: list[str], separator: bytes) -> Iterator[bytes]:
    """Yield a program's output in parts, and kill it when the caller has enough."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            rest, size = b"", 0
            while (chunk := process.stdout.read(_CHUNK)) and size < _OUTPUT_LIMIT:
                size += len(chunk)
                *parts, rest = (rest + chunk).split(separator)
                yield from parts
        finally:
            process.kill()


def _scan(term: str, directory: str) -> Iterator[tuple[str, int, str]]:
    """Yield the results of ``_grep`` without ripgrep."""
    wanted = term.encode("utf-8", "surrogatepass")
    for path in _walk(directory):
        try:
            with open(path, "rb") as file:
                if b"\0" in file.read(_SNIFFED):
                    continue
                file.seek(0)
                for number, line in enumerate(file, 1):
                    if wanted in line:
                        yield path, number, _cut(decoded(line))
        except OSError:
            continue  # not readable, or gone meanwhile


def _walk(directory: str) -> Iterator[str]:
    """Yield the paths of all regular files that are not left out; links are not followed."""
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _LEFT_OUT]
        for name in names:
            path = os.path.join(folder, name)
            if not name.startswith(".") and os.path.isfile(path) and not os.path.islink(path):
                yield path
