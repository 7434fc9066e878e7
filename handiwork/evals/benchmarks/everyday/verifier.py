"""Runs a task's verifier in the workspace, and prints a nonce at its end; scoring runs it by ``python3 -I -c``.

Standard input has the case as JSON: the verifier's ``script``, its ``environment``, the patterns of files that must be
``unchanged``, and the ``nonce``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

IGNORED = {".git", "__pycache__"}
"""Folders that programs change by themselves."""


def changed_files(pattern: str, original: Path) -> list[str]:
    """Return the files that match a pattern and differ between the workspace and the folder ``original``."""
    # Before Python 3.13 a pattern that ends in ** matches folders only.
    pattern += "/*" * pattern.endswith("**")
    names = {name for root in (Path(), original) for name in _files(root, pattern)}
    return sorted(str(name) for name in names if _content(Path(name)) != _content(original / name))


def _files(root: Path, pattern: str) -> Iterator[Path]:
    for path in root.glob(pattern):
        name = path.relative_to(root)
        if path.is_file() and not IGNORED.intersection(name.parts):
            yield name


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def main() -> None:
    """Compare the files that must not change, and run the script; end with an error unless all is right."""
    case = json.load(sys.stdin)
    with open(os.devnull) as null:
        os.dup2(null.fileno(), 0)  # programs that the script starts could read the case again
    sys.path.insert(0, "")  # the script imports modules of the workspace
    os.environ.update(case["environment"])
    for pattern in case["unchanged"]:
        if names := changed_files(pattern, Path(os.environ["ORIGINAL"])):
            sys.exit(f"changed: {', '.join(names)}")
    script = compile(case["script"], "verifier", "exec", dont_inherit=True)
    try:
        exec(script, {"__name__": "__main__"})  # noqa: S102 - the task's own verifier, in a sandbox
    except SystemExit as end:
        if end.code:
            raise
    print(f"\n{case['nonce']}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
