"""Streams of directory trees, as a daemon elsewhere or a modified keeper could send them."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.sandbox.inside.files.tree_stream import TreeStreamError, receive, scan, send, send_end
from tests.fuzz.settings import fuzz_seed, fuzz_settings

NAMES = st.sampled_from(["a", "b", "link", "..", ".", "", "\0", "x\n", "\udcff", "\ud800", "c" * 300, "/etc"])
PATHS = st.one_of(st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: "/".join(["tree", *parts])), st.text())
NUMBERS = st.one_of(st.integers(0, 5), st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=3))
KINDS = st.one_of(st.sampled_from(["file", "link", "dir", "pipe", "whiteout", "gone", "end"]), st.text(max_size=5))
TARGETS = st.sampled_from(["../../outside", "/etc/passwd", "a", "", "\0", "\ud800", 7, None])
NODES = st.fixed_dictionaries(
    {"path": PATHS, "kind": KINDS},
    optional={
        "mode": st.one_of(st.sampled_from([0, 0o644, 0o755, 0o6777]), NUMBERS),
        "size": NUMBERS,
        "mtime_ns": st.one_of(st.integers(-(2**70), 2**70), NUMBERS),
        "target": TARGETS,
        "opaque": st.booleans(),
    },
)
LINES = st.one_of(
    NODES.map(lambda node: json.dumps(node).encode() + b"\n"),
    st.binary(max_size=30),
    st.sampled_from([b"[]\n", b"{}\n", b"1\n", b"null\n", b'{"path": 1, "kind": "file"}\n', b"[" * 5000 + b"\n"]),
)
STREAMS = st.lists(LINES, max_size=6).map(b"".join)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    # In memory: ten thousand cases make and remove files.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        (Path(folder) / "outside").mkdir()
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.timeout(600)
@fuzz_seed
@fuzz_settings
@given(stream=STREAMS, end=st.booleans())
def test_a_stream_is_received_or_refused_and_nothing_leaves_the_directory(
    place: Path, stream: bytes, end: bool
) -> None:
    written = io.BytesIO(stream)
    written.seek(0, os.SEEK_END)
    if end:
        send_end(written)
    with tempfile.TemporaryDirectory(dir=place) as name:
        target = Path(name) / "target"
        (target / "tree").mkdir(parents=True)
        (target / "tree/link").symlink_to(place / "outside")
        try:
            receive(io.BytesIO(written.getvalue()), str(target), None, 1000, ["tree"])
        except (TreeStreamError, OSError):
            pass
        else:
            _sent_again(target)
        assert set(os.listdir(target)) <= {"tree"}
        assert os.listdir(name) == ["target"]
        assert os.listdir(place / "outside") == []
        for folder, _, files in os.walk(target):
            for file in files:
                assert os.lstat(os.path.join(folder, file)).st_mode & 0o6000 == 0


def _sent_again(target: Path) -> None:
    """What was received can be sent, and arrives as it is."""
    stream = io.BytesIO()
    paths = scan(str(target), "")
    send(stream, str(target), paths)
    assert stream.tell() > 0
