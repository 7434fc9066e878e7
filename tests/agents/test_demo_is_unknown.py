"""The demo proves something only if nothing of it stands in the package, but where the server lays one out."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_no_line_and_no_name_of_the_demo_stands_in_the_package() -> None:
    files = {file for file in (ROOT / "handiwork").rglob("*") if file.suffix in (".py", ".j2")}
    package = "\n".join(file.read_text() for file in files - {ROOT / "handiwork/server/api/demo.py"})
    demo = [file.read_text() for file in (ROOT / "examples/demo/todo").rglob("*.py")]
    script = (ROOT / "examples/demo/run.py").read_text()
    task = script.split('TASK = "')[1].split('"')[0]
    lines = {line.strip() for text in demo for line in text.splitlines() if len(line.strip()) > 12}
    common = {line for line in lines if line in package} - {"import pytest", "def __init__(self):"}
    assert not common
    assert not [sentence for sentence in task.split(". ") if sentence in package]
