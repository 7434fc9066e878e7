"""Run by root, as in CI, this runs again, as a user who is nobody, what depends on who the user is."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

UID = 12345
CHECKOUT = Path(__file__).resolve().parents[2]

TESTS = [f"tests/sandbox/test_{name}.py" for name in ("hiding_the_host", "the_workspace", "in_place", "egress")]
TESTS += [f"tests/limits/test_{name}.py" for name in ("over_a_limit", "levels")]
SNAPSHOTS = ["tests/snapshots/test_forks.py", "tests/snapshots/test_store.py"]

SCRIPT = """
set -e
mount --make-rprivate /
stage=$1 closed=$2; shift 2
set -f
n=0; for d in $NEEDED; do mkdir "$stage/$n"; mount --rbind "$d" "$stage/$n"; n=$((n + 1)); done
for d in $closed; do mount -t tmpfs -o mode=755 none "$d"; done
n=0; for d in $NEEDED; do mkdir -p "$d"; mount --rbind "$stage/$n" "$d"; n=$((n + 1)); done
cd "$CHECKOUT"
exec setpriv --reuid 12345 --regid 12345 --clear-groups env -i "$@"
"""


def closed_above(folder: Path) -> Path | None:
    """The topmost directory on the way to a folder that others may not enter."""
    closed = [parent for parent in folder.parents if not parent.stat().st_mode & 0o001]
    return closed[-1] if closed else None


@pytest.mark.slow
@pytest.mark.needs_root
@pytest.mark.timeout(170)
@pytest.mark.skipif(os.geteuid() != 0, reason="this is the ordinary user's run")
@pytest.mark.parametrize("tests", [TESTS, SNAPSHOTS], ids=["isolation", "snapshots"])
def test_isolation_and_the_workspace_are_the_same_for_an_ordinary_user(tests: list[str]) -> None:
    # The interpreter and the checkout may be in root's home: it is covered by one that all may enter, with
    # only what is needed in it, at the same paths.
    stage = Path(tempfile.mkdtemp())
    stage.chmod(0o755)
    home = stage / "home"
    (home / "tmp").mkdir(parents=True)
    for folder in (home, home / "tmp"):
        os.chown(folder, UID, UID)
    needed = list(dict.fromkeys(Path(path).resolve() for path in (CHECKOUT, sys.prefix, sys.base_prefix)))
    closed = {str(parent) for parent in map(closed_above, needed) if parent is not None}
    variables = {
        "HOME": home,
        "TMPDIR": home / "tmp",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": home / "hypothesis",
    }
    done = subprocess.run(
        [
            *("unshare", "-m", "sh", "-c", SCRIPT, "sh", stage, " ".join(closed)),
            *(f"{name}={value}" for name, value in variables.items()),
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-x", *tests),
        ],
        env={**os.environ, "NEEDED": " ".join(map(str, needed)), "CHECKOUT": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    subprocess.run(["rm", "-rf", "--one-file-system", stage], check=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
