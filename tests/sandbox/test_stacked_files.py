"""The files of an overlay, read from its layers, are those that its mount would show."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handiwork.errors import WorkspaceError
from handiwork.workspace.overlay_view import OverlayView


@pytest.fixture
def layers(tmp_path: Path) -> tuple[Path, Path]:
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    for path in ("a", "d/one", "d/two", "e/f/deep", "gone", "turned"):
        (lower / path).parent.mkdir(parents=True, exist_ok=True)
        (lower / path).write_text(f"{path} below")
    upper.mkdir()
    return lower, upper


def names(files: OverlayView, path: str = "") -> list[str]:
    return [entry.name + ("/" if entry.kind == "dir" else "") for entry in files.entries(path)]


def read(files: OverlayView, path: str) -> str:
    with files.open(path) as stream:
        return stream.read().decode()


def whiteout(path: Path) -> None:
    path.touch()
    os.setxattr(path, "user.overlay.whiteout", b"y")


def test_what_is_above_covers_what_is_below(layers: tuple[Path, Path]) -> None:
    lower, upper = layers
    (upper / "a").write_text("a above")
    (upper / "d").mkdir()
    (upper / "d/three").write_text("new")
    files = OverlayView([lower, upper])
    assert names(files) == ["d/", "e/", "a", "gone", "turned"]
    assert names(files, "d") == ["one", "three", "two"]
    assert read(files, "a") == "a above"
    assert read(files, "d/one") == "d/one below"
    assert read(files, "e/f/deep") == "e/f/deep below"


def test_what_was_deleted_is_not_there(layers: tuple[Path, Path]) -> None:
    lower, upper = layers
    whiteout(upper / "gone")
    whiteout(upper / "e")
    files = OverlayView([lower, upper])
    assert names(files) == ["d/", "a", "turned"]
    for path in ("gone", "e/f/deep", "e/f", "nothing", "a/b"):
        with pytest.raises(FileNotFoundError):
            files.open(path)


def test_a_directory_made_anew_hides_the_old_one(layers: tuple[Path, Path]) -> None:
    lower, upper = layers
    (upper / "d").mkdir()
    os.setxattr(upper / "d", "user.overlay.opaque", b"y")
    (upper / "turned").mkdir()
    (upper / "turned/x").touch()
    files = OverlayView([lower, upper])
    assert names(files, "d") == []
    assert names(files, "turned") == ["x"]
    assert names(files) == ["d/", "e/", "turned/", "a", "gone"]


def test_an_empty_file_is_no_deleted_one(layers: tuple[Path, Path]) -> None:
    lower, upper = layers
    (upper / "a").touch()
    assert read(OverlayView([lower, upper]), "a") == ""


def test_no_link_and_no_path_leads_out(layers: tuple[Path, Path], tmp_path: Path) -> None:
    lower, upper = layers
    (tmp_path / "secret").write_text("secret")
    (upper / "link").symlink_to(tmp_path / "secret")
    (upper / "dir").symlink_to(tmp_path)
    (upper / ".git").mkdir()
    (upper / ".git/config").write_text("token")
    os.mkfifo(upper / "pipe")
    files = OverlayView([lower, upper])
    assert [entry.name for entry in files.entries() if entry.kind == "link"] == ["dir", "link"]
    for path in ("link", "../secret", "/etc/passwd", "d/../../secret"):
        with pytest.raises(WorkspaceError):
            files.open(path)
    for path in ("dir/secret", "pipe", ".git/config", ".GIT/config"):
        with pytest.raises(FileNotFoundError):
            files.open(path)


def test_a_directory_is_no_file_and_a_file_no_directory(layers: tuple[Path, Path]) -> None:
    files = OverlayView(layers)
    with pytest.raises(IsADirectoryError):
        files.open("d")
    with pytest.raises(NotADirectoryError):
        files.entries("a")


def test_what_is_mounted_below_is_shown_with_its_own_layers(layers: tuple[Path, Path], tmp_path: Path) -> None:
    real, written = tmp_path / "real", tmp_path / "written"
    real.mkdir()
    (real / "lib").write_text("library")
    files = OverlayView(layers, {"d/modules": [real, written]})
    assert names(files, "d") == ["modules/", "one", "two"]
    assert names(files, "d/modules") == ["lib"]
    assert read(files, "d/modules/lib") == "library"
