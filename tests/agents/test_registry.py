"""Agents are found by name, in a module or in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from handiwork.agents.codeact import CodeActAgent
from handiwork.agents.registry import AgentNotFoundError, descriptions, find, installed


def test_an_installed_agent_is_found_by_its_name() -> None:
    assert "CodeActAgent" in installed()
    assert find("CodeActAgent") is CodeActAgent
    assert find("CodeAct") is CodeActAgent
    assert find("codeact") is CodeActAgent
    assert find("swe-agent").__name__ == "SWEAgent"
    assert find("gptswarm").__name__ == find("GPTSwarmAgent").__name__ == "SwarmAgent"
    assert find("CommitWriter").__name__ == "CommitWriterAgent"
    assert find("commit_writer").__name__ == "CommitWriterAgent"


def test_an_agent_of_a_file_or_a_module(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from handiwork.agents.base import Agent\nclass Mine(Agent):\n    pass\n")
    assert find(f"{file}:Mine").__name__ == "Mine"
    assert find("handiwork.agents.codeact:CodeActAgent") is CodeActAgent


def test_a_package_whose_agent_cannot_be_imported_is_told_and_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_agents.py").write_text("1 / 0\n")
    info = tmp_path / "broken_agents-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken_agents\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[handiwork.agents]\nBrokenAgent = broken_agents:BrokenAgent\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(AgentNotFoundError, match="'BrokenAgent' cannot be loaded: division by zero"):
        find("Broken")
    listed = {agent.name: agent.about for agent in descriptions()}
    assert listed["BrokenAgent"] == "cannot be loaded: the agent 'BrokenAgent' cannot be loaded: division by zero"
    assert listed["CodeActAgent"] == CodeActAgent.description


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
