"""The bundle runs where nothing of the host's system can be seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from handiwork.sandbox.bundle import INSIDE_PYTHON, PREFIX
from tests.bundle.bundle_run import Run

PYTHON = f"{PREFIX}/bin/python3"
BASH = f"{PREFIX}/bin/bash"


@pytest.fixture(scope="module")
def broken_libraries(open_folder: Path) -> Path:
    """Files with the names of libraries that would stop every program that loads one."""
    folder = open_folder / "broken"
    folder.mkdir()
    for name in ("libc.so.6", "libz.so.1", "libtinfo.so.6", "libcrypto.so.3"):
        (folder / name).write_text("not a library")
    (folder / "json.py").write_text("raise SystemExit('the wrong json')")
    folder.chmod(0o755)
    for file in folder.iterdir():
        file.chmod(0o644)
    return folder


def test_python_has_its_standard_library_and_ours(run_inside: Run) -> None:
    code = """
import bz2, ctypes, curses, lzma, multiprocessing, readline, sqlite3, ssl, uuid, venv, zlib
import h11, IPython, psutil, uvicorn.server
import sys
print(sys.executable, sys.version_info[:2], sys.getfilesystemencoding())
print(sqlite3.connect(":memory:").execute("select 6 * 7").fetchone(), len(ssl.RAND_bytes(8)))
"""
    done = run_inside(PYTHON, "-c", code)
    assert (done.stdout, done.stderr) == (f"{PYTHON} (3, 11) utf-8\n(42,) 8\n", "")


def test_python_finds_everything_compiled(run_inside: Run) -> None:
    done = run_inside(PYTHON, "-v", "-c", "import asyncio, ssl, uvicorn.server, IPython")
    assert "matches" in done.stderr
    assert "could not create" not in done.stderr


def test_what_the_skills_need_is_there(run_inside: Run) -> None:
    code = """
import tree_sitter, tree_sitter_bash, tree_sitter_c, tree_sitter_c_sharp, tree_sitter_cpp, tree_sitter_go
import tree_sitter_java, tree_sitter_javascript, tree_sitter_json, tree_sitter_php, tree_sitter_python
import tree_sitter_ruby, tree_sitter_rust, tree_sitter_typescript
import docx, openpyxl, pptx, pyflakes.checker, pylatexenc.latex2text, pypdf
from PIL import Image
print(Image.new("RGB", (3, 2)).size, tree_sitter.Language(tree_sitter_go.language()).name)
"""
    done = run_inside(PYTHON, "-c", code)
    assert (done.stdout, done.stderr) == ("(3, 2) go\n", "")
    assert run_inside(f"{PREFIX}/bin/rg", "--version").stdout.startswith("ripgrep ")


def test_bash_and_busybox_run(run_inside: Run) -> None:
    script = f"echo $BASH_VERSION | {PREFIX}/bin/busybox cut -c1; {PREFIX}/bin/python -c 'print(6 * 7)'"
    assert run_inside(BASH, "-c", script).stdout == "5\n42\n"


def test_library_path_of_an_image_is_ignored(run_inside: Run, broken_libraries: Path) -> None:
    mounts = [(broken_libraries, "/broken")]
    environment = {"LD_LIBRARY_PATH": "/broken"}
    for command in ((BASH, "-c", "echo well"), (PYTHON, "-c", "import ssl, zlib; print('well')")):
        done = run_inside(*command, env=environment, mounts=mounts)
        assert (done.stdout, done.stderr) == ("well\n", "")


def test_python_for_the_server_ignores_what_an_image_sets(run_inside: Run, broken_libraries: Path) -> None:
    environment = {
        "LD_PRELOAD": "/broken/libc.so.6",
        "LD_LIBRARY_PATH": "/broken",
        "PYTHONHOME": "/broken",
        "PYTHONPATH": "/broken",
        "PYTHONSTARTUP": "/broken/json.py",
    }
    code = "import json, ssl, sqlite3, uvicorn, IPython, os; print(os.environ['PYTHONHOME'])"
    done = run_inside(*INSIDE_PYTHON, "-c", code, env=environment, mounts=[(broken_libraries, "/broken")])
    assert (done.stdout, done.stderr) == ("/broken\n", "")


def test_virtual_environment_over_the_bundle(run_inside: Run) -> None:
    script = "cd /tmp && python -m venv --without-pip --system-site-packages v && v/bin/python -c 'import IPython'"
    done = run_inside(BASH, "-c", script, env={"PATH": f"{PREFIX}/bin"})
    assert (done.returncode, done.stderr) == (0, "")
