"""A run of the program, and what another user of the machine sees of it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

OTHER = 64_321
"""The uid of a user that no machine has."""

HANDIWORK = Path(sys.executable).with_name("handiwork")
OWN = frozenset({"base", "workspace", "upper", "home", "tmp", "files", "layers"})
"""Folders below which files have the modes that the project, or the agent, gave them."""


def as_user(uid: int, cache: Path, expression: str) -> str:
    """Return what an expression of handiwork.paths gives another user, whose cache is the folder."""
    code = f"import os; from handiwork.paths import *; os.setuid({uid}); print({expression})"
    kept = {key: value for key, value in os.environ.items() if key != "XDG_RUNTIME_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, "HANDIWORK_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def run_once(folder: Path) -> Path:
    """Run a session that writes a file, with the umask most users have, and return its data folder."""
    project, script, data = folder / "project", folder / "script.jsonl", folder / "data"
    (project / "src").mkdir(parents=True, exist_ok=True)
    (project / "src/main.py").write_text("print('hello')\n")
    calls = [("bash", {"command": "seq 1 20000; echo x > new"}), ("finish", {"message": "done"})]
    replies = [{"tool_calls": [{"name": name, "arguments": arguments}]} for name, arguments in calls]
    script.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    done = subprocess.run(
        [HANDIWORK, "run", "x", "--model", f"scripted:{script}", "--sandbox", "none", "--workspace", project],
        env={**os.environ, "HANDIWORK_DATA": str(data), "HOME": str(folder)},
        umask=0o022,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return data


def open_to_others(data: Path) -> list[str]:
    """Return what group or others may do something with, of all that is not the project's own."""
    found: list[str] = []
    for path, folders, names in os.walk(data):
        folders[:] = [name for name in folders if name not in OWN]
        for one in (Path(path), *(Path(path, name) for name in names)):
            if stat.S_IMODE(one.lstat().st_mode) & 0o077:
                found.append(str(one))
    return found
