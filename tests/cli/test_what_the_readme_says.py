"""What README.md tells a reader to type is there, and the agent it shows is what it says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from handiwork.cli.exits import Exit
from handiwork.cli.main import app
from tests.cli.program import Program

CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
INLINE = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", README, flags=re.DOTALL | re.MULTILINE))
LINES = [line for block in BLOCKS for line in block.splitlines()] + INLINE
CALLS = [found[1] for line in LINES if (found := re.search(r"(?:^|[\s/])handiwork ([^&]+)$", line))]
TABLE = "\n".join(re.findall(r"^\| (`.*?) \|", README, re.MULTILINE))
AGENT = CHECKOUT / "examples/minimal_agent.py"

program_itself = get_command(app)
assert isinstance(program_itself, TyperGroup)
COMMANDS = program_itself.commands


def leaves(group: TyperGroup) -> Iterator[TyperCommand]:
    for command in group.commands.values():
        if isinstance(command, TyperGroup):
            yield from leaves(command)
        elif isinstance(command, TyperCommand):
            yield command


@pytest.mark.parametrize("call", CALLS)
def test_every_call_is_understood(call: str) -> None:
    name, *arguments = shlex.split(call)
    command = COMMANDS[name]
    while isinstance(command, TyperGroup):
        name, *arguments = arguments
        command = command.commands[name]
    assert command.make_context(name, arguments).info_name == name


def test_every_command_is_named() -> None:
    named = {call.split()[0] for call in CALLS} | set(re.findall(r"`(?:handiwork )?([\w-]+)", TABLE))
    assert named == set(COMMANDS)


def test_every_flag_exists() -> None:
    known = {option for leaf in leaves(program_itself) for parameter in leaf.params for option in parameter.opts}
    named = {flag for line in LINES for flag in re.findall(r"(?<!\S)--[a-z-]+", line)}
    assert len(named) > 5
    assert named <= known


def test_the_exit_codes_are_the_programs_own() -> None:
    said = re.search(r"Exit codes: (.*?)\.", README, re.DOTALL)
    assert said is not None
    # Only the shell sees how it ends when nobody reads its output any more.
    assert set(map(int, re.findall(r"\d+", said[1]))) == set(Exit) - {Exit.BROKEN_PIPE}


def test_every_make_target_exists() -> None:
    targets = re.findall(r"^([\w-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    named = [target for line in LINES for target in re.findall(r"^make ([\w-]+)", line)]
    named += re.findall(r"^\| `make ([\w-]+)`", (CHECKOUT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert len(named) > 5
    assert set(named) <= set(targets)


def test_every_linked_file_is_there() -> None:
    linked = re.findall(r"\]\((?!https?:)([^)]+)\)", README)
    assert linked
    assert [path for path in linked if not (CHECKOUT / path.partition("#")[0]).exists()] == []


def test_the_minimal_agent_is_as_short_as_is_said() -> None:
    lines = len(AGENT.read_text().splitlines())
    assert lines < 40
    assert f"a whole one in {lines} lines" in " ".join(README.split())


def test_the_minimal_agent_carries_out_a_task(program: Program) -> None:
    model = program.script(
        {"content": "Once more.\n<execute_bash>\necho good day >> greeting.txt; wc -l greeting.txt\n</execute_bash>"},
        {"content": "<finish/>"},
    )
    done = program("run", "greet twice", "--agent", f"{AGENT}:MinimalAgent", "--model", model)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 greeting.txt" in done.stdout
    assert "+good day" in program("diff").stdout
