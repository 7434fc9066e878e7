"""Directory trees that are carried as a stream, which may be a hostile one."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from handiwork.sandbox.inside.files.tree_stream import TreeStreamError, receive, scan, send, send_end


def carried(source: Path, target: Path) -> None:
    stream = io.BytesIO()
    send(stream, str(source), scan(str(source), ""), at="tree")
    send_end(stream)
    stream.seek(0)
    receive(stream, str(target), None, 1000, ["tree"])


def test_a_tree_arrives_as_it_was(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "closed/in").mkdir(parents=True)
    (source / "closed/in/file").write_text("text")
    os.chmod(source / "closed/in/file", 0o000)
    (source / "link").symlink_to("/etc/passwd")
    os.mkfifo(source / "pipe", 0o640)
    (source / "odd\n\udcff").write_bytes(b"\0")
    os.utime(source / "odd\n\udcff", ns=(1, 1234567890123456789))
    os.chmod(source / "closed", 0o555)
    os.chmod(source, 0o1770)
    target.mkdir()
    for _ in range(2):  # what is there already is replaced
        carried(source, target)
        found, expected = scan(str(target), "tree"), scan(str(source), "")
        assert {path: signature[4] for path, signature in found.items()} == {
            f"tree/{path}".rstrip("/"): signature[4] for path, signature in expected.items()
        }
        assert os.readlink(target / "tree/link") == "/etc/passwd"
        assert (target / "tree/odd\n\udcff").stat().st_mtime_ns == 1234567890123456789


@pytest.mark.parametrize(
    "node",
    [
        {"path": "../out", "kind": "file"},
        {"path": "/out", "kind": "file"},
        {"path": "tree/../../out", "kind": "dir"},
        {"path": "tree/link/out", "kind": "file"},
        {"path": "other", "kind": "file"},
        {"path": "trees", "kind": "dir"},
        {"path": "tree/large", "kind": "file", "size": 1001},
        {"path": "tree/negative", "kind": "file", "size": -1},
        {"path": "tree/cut", "kind": "file", "size": 5},
        {"path": "tree/odd", "kind": "device"},
        {"path": "tree/unknown", "kind": "file", "more": 1},
    ],
)
def test_nothing_leaves_the_directory_and_nothing_else_is_made(tmp_path: Path, node: dict[str, Any]) -> None:
    target, out = tmp_path / "target", tmp_path / "outside"
    (target / "tree").mkdir(parents=True)
    out.mkdir()
    (target / "tree/link").symlink_to(out)
    with pytest.raises((TreeStreamError, OSError)):
        receive(io.BytesIO(json.dumps(node).encode() + b"\n"), str(target), None, 1000, ["tree"])
    assert list(out.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside", "target"]
    assert [path.name for path in target.iterdir()] == ["tree"]


def test_no_setuid_bit_arrives(tmp_path: Path) -> None:
    stream = io.BytesIO(json.dumps({"path": "tree", "kind": "file", "mode": 0o6755}).encode() + b"\n")
    stream.seek(0, os.SEEK_END)
    send_end(stream)
    stream.seek(0)
    receive(stream, str(tmp_path), None, 0, ["tree"])
    assert (tmp_path / "tree").stat().st_mode & 0o7777 == 0o755
