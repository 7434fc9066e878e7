"""Commands that wait for keys are not run; a word that only begins like one is no such command."""

from __future__ import annotations

import pytest

from handiwork.agents.swe_agent.command_filter import ToolFilterConfig, why_blocked

RULES = ToolFilterConfig()


@pytest.mark.parametrize(
    "command",
    [
        "vim a.py",
        "vi",
        "cd src && vim a.py",
        "EDITOR=x nano a",
        "tail -f log",
        "python",
        "python3",
        "cd src; python",
        "bash",
        "\nless a.txt\n",
        "git log | less",
    ],
)
def test_what_waits_for_keys_is_blocked(command: str) -> None:
    assert "cannot be run here" in why_blocked(command, RULES)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "make",
            "make test",
            "makefile_lint",
            "vivado",
            "view a",
            "lessc a.less",
            "nanotest",
            "emacsclient --version",
        ),
        *("python a.py", "python3 -m pytest", "echo 1 | python", "python < a.py", "tail a", "tail -n 5 -f.txt"),
        *("bash run.sh", "cat > a <<'EOF'\nvim b\npython\nEOF", "grep -rn vim .", "echo 'a; vim b'", "python <<E\nE"),
        *("", "echo 'unbalanced"),
    ],
)
def test_other_commands_are_not(command: str) -> None:
    assert why_blocked(command, RULES) == ""


def test_the_rules_of_a_configuration() -> None:
    rules = ToolFilterConfig(
        blocklist=("make",),
        block_unless_regex={"r2": r"\b(?:r2)\b.* -c "},
        blocklist_error_template="Operation '{{action}}' is not supported",
    )
    assert why_blocked("make test", rules) == "Operation 'make test' is not supported"
    assert why_blocked("makefile_lint", rules) == ""
    assert why_blocked("r2 a.out", rules)
    assert not why_blocked("r2 a.out -c aaa", rules)
    assert not why_blocked("vim a", rules)
