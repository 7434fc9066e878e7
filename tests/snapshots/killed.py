"""Takes snapshots of a directory that it changes without end, to be killed: killed.py STORE DIRECTORY."""

from __future__ import annotations

import sys
from pathlib import Path

from handiwork.workspace.snapshots.object_store import Objects
from handiwork.workspace.snapshots.store import Snapshots, WritableDir


def main(store: Path, directory: Path) -> None:
    snapshots = Snapshots(Objects(store), {"workspace": WritableDir(directory)})
    number = 0
    while True:
        for place in range(40):
            (directory / str(place)).mkdir(exist_ok=True)
            (directory / str(place) / "file").write_text(f"{number} {place}\n" * 5000)
        taken = snapshots.take()
        assert taken is not None
        sys.stdout.write(taken.tree + "\n")
        sys.stdout.flush()
        number += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
