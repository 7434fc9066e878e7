"""The guard of edits: a change that adds syntax errors or undefined names does not reach the file."""

from __future__ import annotations

import base64
import importlib.util
import json
import sys
from functools import lru_cache
from typing import Any

from .files import decoded, lines_of, write_bytes
from .tools import SkillError, code_folder, command_of, libraries, run_program

_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); sys.path += sys.argv[2:]; "
_COMPARE = f"{_PROGRAM}from inside.syntax.program import main; main()"
_BUNDLED = (3, 11)
"""The version of the bundle's Python."""

_TIMEOUT = 20.0  # seconds
_AROUND = 5  # lines shown around a change
_MOST = 40  # lines shown of each version
_WIDEST = 300  # characters of a line that are shown


def guarded_write(path: str, before: bytes, after: bytes) -> list[str]:
    """Write ``after`` if it has no error that ``before`` does not have; return errors that may be none.

    Raises SkillError with the errors and both versions; the file is unchanged then.
    """
    language = _syntax_check().language_of(path, after)
    added, remarks = _added_errors(path, before, after, is_python=language == "python") if language else ([], [])
    if added:
        raise SkillError(_refusal(path, before, after, added))
    write_bytes(path, after)
    return remarks


@lru_cache(maxsize=1)
def _syntax_check() -> Any:
    """Return the action server's module for syntax checks, loaded from its file: its package is not on the path."""
    spec = importlib.util.spec_from_file_location(f"{__package__}.syntax", f"{code_folder()}/inside/syntax/check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _added_errors(path: str, before: bytes, after: bytes, *, is_python: bool) -> tuple[list[str], list[str]]:
    """Return the errors of the new version, and remarks: errors of a grammar that does not know all of its language.

    Python's errors are those of the newer of the notebook's and the bundle's interpreter.
    """
    bundled = command_of("python3")
    is_newer = is_python and sys.version_info >= _BUNDLED
    python = [sys.executable] if is_newer or bundled is None else bundled
    answer = _compare(python, path, before, after)
    if answer["doubted"] and bundled is not None and not _is_error_in_newer_python(bundled, after):
        return [], []
    return answer["added"], answer["remarks"]


def _compare(python: list[str], path: str, before: bytes, after: bytes) -> Any:
    versions = {"before": base64.b64encode(before).decode(), "after": base64.b64encode(after).decode()}
    request = json.dumps({"path": path, **versions, "names": True}).encode()
    paths = [code_folder(), *([libraries()] if libraries() else [])]
    return json.loads(run_program(python, _COMPARE, paths, request, _TIMEOUT))


def _is_error_in_newer_python(python: list[str], source: bytes) -> bool:
    """Return whether the file is wrong in the newest Python too, as far as the bundle's grammar knows it."""
    code = f"{_PROGRAM}from inside.syntax.program import print_verdict; print_verdict()"
    return run_program(python, code, [code_folder(), libraries()], source, _TIMEOUT) == b"error"


def _refusal(path: str, before: bytes, after: bytes, errors: list[str]) -> str:
    old, new = lines_of(before), lines_of(after)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    same = 0
    while same < min(len(old), len(new)) - start and old[-1 - same] == new[-1 - same]:
        same += 1
    return "\n".join(
        [
            f"The edit would add errors, so {path} was left as it was:",
            *(f"- {error}" for error in errors),
            "With the edit it would have been:",
            *_around(new, start, len(new) - same),
            "It still is:",
            *_around(old, start, len(old) - same),
            "Do not run the same edit again: correct it.",
        ]
    )


def _around(lines: list[bytes], start: int, end: int) -> list[str]:
    """Return the lines with their numbers around the changed ones, at most _MOST."""
    first, last = max(0, start - _AROUND), min(len(lines), end + _AROUND)
    numbered = [f"{index + 1}|{decoded(lines[index])[:_WIDEST]}" for index in range(first, min(last, first + _MOST))]
    return [*numbered, *([f"({last - first - _MOST} more lines)"] if last - first > _MOST else [])]
