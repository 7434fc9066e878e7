"""Commands, flags and files that the documentation names exist. tests/docs runs its code blocks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import chain
from typing import cast

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from handiwork.cli.main import app
from handiwork.errors import Exit
from tests.cli.program import Program
from tests.docs.blocks import BLOCKS, CHECKOUT, PAGES

README, RUNNING, PYTHON = ((CHECKOUT / path).read_text() for path in ("README.md", "docs/running.md", "docs/python.md"))
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
INLINE = {page.name: re.findall(r"`([^`\n]+)`", FENCED.sub("", page.read_text())) for page in PAGES}
BLOCK_LINES = [
    line
    for page in PAGES
    for block in BLOCKS[page]
    if block.language == "sh"
    for line in block.text.replace("\\\n", "").split("\n")
]
LINES = [line.partition(" #")[0] for line in [*BLOCK_LINES, *chain(*INLINE.values())]]
CALLS = sorted({call[1] for line in LINES if (call := re.search(r"(?:^|[\s/])handiwork ([^&|]+?) *(?:\|\||$)", line))})
TABLE = "\n".join(re.findall(r"^\| (`.*?) \|", RUNNING, re.MULTILINE))
AGENT = CHECKOUT / "examples/minimal_agent.py"

program_itself = cast("TyperGroup", get_command(app))
COMMANDS = program_itself.commands


def leaves(group: TyperGroup) -> Iterator[TyperCommand | TyperGroup]:
    """Yield the commands, also groups that do something themselves."""
    if group.invoke_without_command:
        yield group
    for command in group.commands.values():
        if isinstance(command, TyperGroup):
            yield from leaves(command)
        elif isinstance(command, TyperCommand):
            yield command


@pytest.mark.parametrize("call", CALLS)
def test_every_call_is_understood(call: str) -> None:
    name, *arguments = shlex.split(call)
    command = COMMANDS[name]
    while arguments and isinstance(command, TyperGroup) and not arguments[0].startswith("-"):
        name, *arguments = arguments
        command = command.commands[name]
    if arguments:  # without any the command itself is meant
        assert command.make_context(name, arguments).info_name == name


def test_every_command_is_named() -> None:
    named = {call.split()[0] for call in CALLS} | set(re.findall(r"`(?:handiwork )?([\w-]+)", TABLE))
    assert named == set(COMMANDS)


def test_every_flag_exists() -> None:
    known = {option for leaf in leaves(program_itself) for parameter in leaf.params for option in parameter.opts}
    named = {flag for text in [*CALLS, *INLINE["README.md"]] for flag in re.findall(r"(?<!\S)--[a-z-]+", text)}
    assert len(named) > 5
    assert named <= known


def test_the_exit_codes_are_the_programs_own() -> None:
    said = re.search(r"Exit codes: (.*?)\.", RUNNING, re.DOTALL)
    assert said is not None
    # Only the shell sees how it ends when nobody reads its output any more.
    assert set(map(int, re.findall(r"\d+", said[1]))) == set(Exit) - {Exit.BROKEN_PIPE}


def test_every_make_target_exists() -> None:
    targets = re.findall(r"^([\w-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    named = [target for line in LINES for target in re.findall(r"^make ([\w-]+)", line)]
    named += re.findall(r"^\| `make ([\w-]+)`", (CHECKOUT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert len(named) > 5
    assert set(named) <= set(targets)


def test_every_measurement_exists() -> None:
    named = {module for line in LINES for module in re.findall(r"python -m (perf[\w.]*)", line)}
    assert len(named) > 5
    assert [module for module in named if find_spec(module) is None] == []


def test_every_linked_file_is_there() -> None:
    linked = re.findall(r"\]\((?!https?:)([^)]+)\)", README)
    assert linked
    assert [path for path in linked if not (CHECKOUT / path.partition("#")[0]).exists()] == []


def test_the_minimal_agent_is_as_short_as_is_said() -> None:
    lines = len(AGENT.read_text().splitlines())
    assert lines < 40
    assert f"a complete agent in {lines} lines" in " ".join(PYTHON.split())


def test_the_minimal_agent_carries_out_a_task(program: Program) -> None:
    model = program.script(
        {"content": "Once more.\n<execute_bash>\necho good day >> greeting.txt; wc -l greeting.txt\n</execute_bash>"},
        {"content": "<finish/>"},
    )
    done = program("run", "greet twice", "--agent", f"{AGENT}:MinimalAgent", "--model", model)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 greeting.txt" in done.stdout
    assert "+good day" in program("diff").stdout
