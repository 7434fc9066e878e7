"""Temporary folders of killed processes are removed, those of living ones stay."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from handiwork.workspace.files.temp_dir import remove_abandoned, temporary_dir

PROGRAM = """
import time
from handiwork.workspace.files.temp_dir import temporary_dir
with temporary_dir() as folder:
    (folder / "copy").write_text("text")
    print(folder, flush=True)
    time.sleep(60)
"""


def test_folders_of_killed_processes_are_removed_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    other = tmp_path / "handiwork-files-of-somebody"
    other.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env={"TMPDIR": str(tmp_path)}
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        with temporary_dir() as own:
            remove_abandoned()
            assert (folder / "copy").read_text() == "text"
            process.kill()
            process.wait()
            remove_abandoned()
            assert sorted(tmp_path.iterdir()) == sorted([own, other])
