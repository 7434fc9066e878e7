"""Names of files that the agent chose, as the user reads them."""

from __future__ import annotations

import pytest

from tests.cli.program import Program, bash, finish


@pytest.mark.slow
def test_a_name_with_a_newline_or_an_escape_forges_no_line_of_apply_and_diff(program: Program) -> None:
    command = "echo 1 > $'x\\nwritten   fake'; echo 1 > $'y\\e[2K\\rdeleted   z'; ln -s / $'l\\nforged: well'"
    program.run(bash(command), finish())
    for shown in (program("diff"), program("apply")):
        lines = (shown.stdout + shown.stderr).splitlines()
        assert not any(line.startswith(("written   fake", "deleted   z", "forged")) for line in lines)
        assert "\x1b" not in shown.stdout + shown.stderr
        assert any(line.rstrip().endswith('x\\nwritten   fake"') for line in lines), lines
    (program.workspace / "x\nwritten   fake").write_text("mine\n")
    conflict = program("apply")
    assert conflict.returncode == 1
    assert not any(line.startswith("written   fake") for line in conflict.stderr.splitlines())
