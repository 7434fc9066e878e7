"""The files of a session: the agent's copy keeps a file's holes, a fork what is recorded of its image."""

from __future__ import annotations

from pathlib import Path

from handiwork.workspace.session_files import OverlayFiles, PlainCopyFiles
from tests.workspace.trees import write_tree


def test_a_sparse_file_stays_sparse_in_the_copy_that_needs_no_sandbox(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "project", {"x:run": b"#!/bin/sh\n"})
    with (source / "disk").open("wb") as file:
        file.truncate(1 << 27)
    files = PlainCopyFiles(tmp_path / "session", source)
    files.create()
    copy = (files.agent_dir / "disk").stat()
    assert (copy.st_size, copy.st_blocks < 100) == (1 << 27, True)
    original, program = (source / "run").stat(), (files.agent_dir / "run").stat()
    assert (program.st_mode, program.st_mtime_ns) == (original.st_mode, original.st_mtime_ns)


def test_a_fork_keeps_the_record_of_its_image(tmp_path: Path) -> None:
    sessions, source = tmp_path / "data/sessions", write_tree(tmp_path / "project", {"a": b"1"})
    files, fork = OverlayFiles(sessions / "one", source), sessions / "two"
    files.create()
    fork.mkdir()
    files.fork(fork, "")
    assert not (fork / "image").exists(), "the session has none"
    (sessions / "one/image").write_text("sha256:0123")
    (fork := sessions / "three").mkdir()
    files.fork(fork, "")
    assert (fork / "image").read_text() == "sha256:0123"
