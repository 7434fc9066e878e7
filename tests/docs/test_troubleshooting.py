"""Every command of docs/troubleshooting.md fails as the page says, with the message that the page shows."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.blocks import BLOCKS, CHECKOUT, Block
from tests.docs.test_commands import Reader

PAGE = BLOCKS[CHECKOUT / "docs/troubleshooting.md"]
FAILURES = [(command, message) for command, message in pairwise(PAGE) if command.mark("fails")]


def wrapped(number: int, block: Block) -> Block:
    """Return a block that runs another in a shell of its own and stores its output and its exit code."""
    text = f"(set +e\n(set -e\n{block.text})\necho $? > ~/code-{number}) > ~/output-{number} 2>&1\n"
    return Block(block.place, block.language, text, ())


def pattern_of(message: Block) -> str:
    """Return the regular expression of a message, in which three dots stand for any text."""
    return ".*".join(re.escape(part) for part in message.text.strip().split("..."))


def test_every_other_page_is_without_failing_commands() -> None:
    others = [
        block.place for blocks in BLOCKS.values() for block in blocks if block not in PAGE and block.mark("fails")
    ]
    assert others == []
    assert len(FAILURES) > 10
    assert [message.place for _, message in FAILURES if message.language != "text"] == []


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_commands_fail_with_the_messages_of_the_page(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.use_script()
    reader.environment["PATH"] = f"{reader.checkout}/.venv/bin:{reader.environment['PATH']}"
    shutil.copytree(CHECKOUT / "examples/demo/todo", tmp_path / "src/project")
    await reader.type([wrapped(number, command) for number, (command, _) in enumerate(FAILURES)])
    for number, (command, message) in enumerate(FAILURES):
        output = (tmp_path / f"output-{number}").read_text()
        assert re.search(pattern_of(message), output, re.DOTALL), f"{message.place}:\n{output}"
        assert f"exits with code {(tmp_path / f'code-{number}').read_text().strip()}" == command.mark("fails"), output
