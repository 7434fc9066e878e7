"""Of the user's own programs the sandbox sees what the project and PATH need, and nothing by a project's trick."""

from __future__ import annotations

from pathlib import Path

import pytest

from handiwork.sandbox.toolchains import find_toolchains
from tests.without_home import run_without_home


def make(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_the_interpreter_of_the_virtual_environment_is_found(tmp_path: Path) -> None:
    root = tmp_path / "me/python/3.12"
    make(root / "lib/python3.12/os.py")
    make(root / "bin/python3.12")
    make(tmp_path / "project/.venv/pyvenv.cfg").write_text(f"version = 3.12\nhome = {root}/bin\n")
    found = find_toolchains(tmp_path / "project", {"PATH": "/usr/bin"})
    assert found.roots == [root]
    assert found.path == [f"{tmp_path}/project/.venv/bin", "/usr/bin", "/usr/local/bin", "/bin"]
    assert found.variables["VIRTUAL_ENV"] == f"{tmp_path}/project/.venv"


def test_the_active_virtual_environment_is_first_on_the_path_and_mounted(tmp_path: Path) -> None:
    active = make(tmp_path / "environments/one/pyvenv.cfg").parent
    found = find_toolchains(tmp_path / "project", {"PATH": "/usr/bin", "VIRTUAL_ENV": str(active)})
    assert found.roots == [active]
    assert found.path[0] == f"{active}/bin"
    assert found.variables["VIRTUAL_ENV"] == str(active)


def test_the_project_s_own_environment_comes_before_the_active_one(tmp_path: Path) -> None:
    active = make(tmp_path / "environments/one/pyvenv.cfg").parent
    own = make(tmp_path / "project/.venv/pyvenv.cfg").parent
    found = find_toolchains(tmp_path / "project", {"PATH": "/usr/bin", "VIRTUAL_ENV": str(active)})
    assert (found.roots, found.path[0]) == ([], f"{own}/bin")
    assert found.variables["VIRTUAL_ENV"] == str(own)


@pytest.mark.parametrize("place", ["home", "home/..", "/"])
def test_neither_a_home_nor_the_root_is_an_active_environment(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "pyvenv.cfg")
    make(tmp_path / "home/pyvenv.cfg")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    found = find_toolchains(tmp_path / "project", {"PATH": "/usr/bin", "VIRTUAL_ENV": str(tmp_path / place)})
    assert (found.roots, found.path[0]) == ([], "/usr/bin")
    assert "VIRTUAL_ENV" not in found.variables


def test_an_active_environment_is_found_and_mounted_for_a_user_without_a_home(tmp_path: Path) -> None:
    active = make(tmp_path / "environments/one/pyvenv.cfg").parent
    script = "from pathlib import Path; from handiwork.sandbox.toolchains import check_mounts, find_toolchains;"
    script += f"roots = find_toolchains(Path('project'), {{'VIRTUAL_ENV': '{active}'}}).roots;"
    script += "check_mounts(roots); print(*roots)"
    assert run_without_home(script, tmp_path) == f"{active}\n"


def test_a_project_cannot_name_any_directory_as_its_interpreter(tmp_path: Path) -> None:
    make(tmp_path / "me/.ssh/id")
    make(tmp_path / "project/.venv/pyvenv.cfg").write_text(f"home = {tmp_path}/me/.ssh\n")
    (tmp_path / "project/.venv/bin").mkdir()
    (tmp_path / "project/.venv/bin/python").symlink_to(tmp_path / "me/.ssh/id")
    assert find_toolchains(tmp_path / "project", {}).roots == []


def test_toolchains_on_the_path_are_seen_and_other_directories_are_not(tmp_path: Path) -> None:
    home = tmp_path / "me"
    for name in (".pyenv/shims/python", ".nvm/versions/node/v22/bin/node", ".cargo/bin/cargo", "secret/tool"):
        make(home / name)
    (home / ".rustup").mkdir()
    make(home / ".cargo/credentials.toml")
    path = ":".join(str(home / name) for name in (".pyenv/shims", ".nvm/versions/node/v22/bin", ".cargo/bin", "secret"))
    found = find_toolchains(tmp_path / "project", {"HOME": str(home), "PATH": path})
    assert set(found.roots) == {home / ".pyenv", home / ".nvm", home / ".cargo/bin", home / ".rustup"}
    assert f"{home}/secret" not in found.path
