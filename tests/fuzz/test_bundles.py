"""Bundles of commits, as a sandbox could hand them out, and what of them comes into the user's repository."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.errors import WorkspaceError
from handiwork.workspace.git.import_commits import import_commits
from tests.fuzz.settings import CASES, fuzz_seed, fuzz_settings
from tests.workspace.trees import git, write_tree

# Each case starts git several times, so there are fewer.
some_settings = settings(fuzz_settings, max_examples=CASES // 20)

EDITS = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=3), st.integers(0, 3)), max_size=4)
HEADS = st.sampled_from([b"", b"# v2 git bundle\n", b"# v3 git bundle\n@object-format=sha1\n", b"-%040d x\n" % 1])


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        mine, theirs = Path(name, "mine"), Path(name, "theirs")
        write_tree(mine, {"a": b"1\n"})
        git(mine, "init", "-q")
        git(mine, "add", ".")
        git(mine, "commit", "-qm", "one")
        git(mine.parent, "clone", "-q", str(mine), str(theirs))
        write_tree(theirs, {"b": b"2\n" * 50})
        git(theirs, "add", ".")
        git(theirs, "commit", "-qm", "two")
        git(theirs, "bundle", "create", "-q", str(mine.parent / "whole"), "HEAD", "^HEAD~1")
        yield mine.parent


@pytest.mark.slow
@pytest.mark.timeout(600)
@fuzz_seed
@some_settings
@given(edits=EDITS, head=HEADS)
def test_a_bundle_is_imported_whole_or_refused_and_no_other_branch_changes(
    place: Path, edits: list[tuple[float, bytes, int]], head: bytes
) -> None:
    mine, data = place / "mine", bytearray((place / "whole").read_bytes())
    for where, new, gone in edits:
        at = int(where * len(data))
        data[at : at + gone] = new
    (place / "bundle").write_bytes(head + data)
    before = git(mine, "for-each-ref")
    try:
        branch = import_commits(mine, place / "bundle", "fuzz")
    except WorkspaceError:
        branch = None
    if branch is not None:
        assert git(mine, "log", "--format=%s", branch) == "two\none\n"
        git(mine, "branch", "-q", "-D", branch)
    assert git(mine, "for-each-ref") == before
