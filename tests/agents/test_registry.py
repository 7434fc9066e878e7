"""Agents are found by name, in a module or in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from handiwork.agents.codeact import CodeActAgent
from handiwork.agents.registry import AgentNotFoundError, find, installed


def test_an_installed_agent_is_found_by_its_name() -> None:
    assert "CodeActAgent" in installed()
    assert find("CodeActAgent") is CodeActAgent
    assert find("CodeAct") is CodeActAgent
    assert find("CommitWriter").__name__ == "CommitWriterAgent"


def test_an_agent_of_a_file_or_a_module(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from handiwork.agents.base import Agent\nclass Mine(Agent):\n    pass\n")
    assert find(f"{file}:Mine").__name__ == "Mine"
    assert find("handiwork.agents.codeact:CodeActAgent") is CodeActAgent


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Nobody", "installed: AgentlessAgent, BrowsingAgent, CodeActAgent, .*, VisualBrowsingAgent; name your own as"),
        ("missing.py:Mine", "cannot be loaded"),
        ("handiwork.agents.codeact:Other", "cannot be loaded"),
        ("pathlib:Path", "not a subclass"),
    ],
)
def test_a_name_that_means_nothing_is_told(name: str, told: str) -> None:
    with pytest.raises(AgentNotFoundError, match=told):
        find(name)
