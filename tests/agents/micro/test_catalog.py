"""The places of micro agents: packages, the user's folder, and a repository that the user trusts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from handiwork.agents.base import Agent
from handiwork.agents.interface import fields_text
from handiwork.agents.micro.catalog import LONGEST, read_catalog
from handiwork.agents.micro.definition import MicroFileError
from handiwork.agents.planner import PlannerAgent
from handiwork.agents.registry import AgentNotFoundError, descriptions, find

HUB = {
    *("CoderAgent", "CommitWriterAgent", "MathAgent", "PostgresAgent", "RepoStudyAgent"),
    *("StudyRepoForTaskAgent", "TypoFixerAgent", "VerifierAgent"),
}


def agent_file(folder: Path, name: str, keys: str = "", body: str = "Do {{ task }}.") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.md"
    file.write_text(f"---\nname: {name}\ndescription: of {folder.name}\n{keys}---\n{body}\n")
    return file


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config/handiwork/micro"


def test_the_packages_own_folder(user: Path) -> None:
    catalog = read_catalog()
    assert set(catalog.agents) == HUB
    assert catalog.problems == []


@pytest.mark.parametrize("name", sorted(HUB))
def test_each_of_the_hub_is_an_agent(name: str, user: Path) -> None:
    agent = find(name)
    assert issubclass(agent, Agent)
    assert agent.description
    assert fields_text(agent.outputs) != "..."


def test_the_users_folder_wins_over_packages(user: Path) -> None:
    agent_file(user, "MathAgent", body="Mine.")
    agent_file(user, "Greeter")
    assert read_catalog().agents["MathAgent"].body == "Mine."
    listed = {agent.name: agent for agent in descriptions()}
    assert listed["Greeter"].about == "of micro"
    assert listed["Greeter"].takes == "task: str = ''"
    assert listed["MathAgent"].package == ""


def test_a_micro_agent_comes_before_one_in_python_only_by_its_exact_name(user: Path) -> None:
    agent_file(user, "planner")
    assert find("planner").description == "of micro"
    for name in ("PlannerAgent", "Planner", "planneragent"):
        assert find(name) is PlannerAgent
    listed = {agent.name: agent.about for agent in descriptions()}
    assert (listed["planner"], listed["PlannerAgent"]) == ("of micro", PlannerAgent.description)


def test_another_package(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    agent_file(site / "their_agents", "TheirAgent")
    (site / "their_agents/__init__.py").touch()
    for name, value in (("theirs", "their_agents"), ("broken", "their_agents.nothing")):
        info = site / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[handiwork.micro_agents]\n{name} = {value}\n")
    monkeypatch.syspath_prepend(str(site))
    catalog = read_catalog()
    assert catalog.agents["TheirAgent"].path == site / "their_agents/TheirAgent.md"
    assert catalog.packages[catalog.agents["TheirAgent"].path] == "theirs"
    assert any("broken: the entry point broken names their_agents.nothing" in str(each) for each in catalog.problems)
    sys.modules.pop("their_agents", None)


def test_the_accepted_texts_of_a_repository_win_over_the_users(user: Path, tmp_path: Path) -> None:
    agent_file(user, "Greeter", body="user's")
    agent_file(user, "Mine", body="user's")
    file = agent_file(tmp_path / "repository", "Greeter", body="repository's")
    agents = read_catalog({file: file.read_text()}).agents
    bodies = {name: micro.body for name, micro in agents.items() if name not in HUB}
    assert bodies == {"Greeter": "repository's", "Mine": "user's"}


def test_broken_files_are_told_and_the_others_work(user: Path) -> None:
    agent_file(user, "Good")
    (user / "bytes.md").write_bytes(b"\xff\xfe")
    (user / "large.md").write_text("x" * (LONGEST + 1))
    (user / "folder.md").mkdir()
    os.mkfifo(user / "pipe.md")
    agent_file(user, "CodeActAgent")
    (user / "twice.md").write_text("---\nname: Good\n---\nx\n")
    catalog = read_catalog()
    assert "Good" in catalog.agents
    assert [str(problem).removeprefix(f"{user}/") for problem in catalog.problems] == [
        "CodeActAgent.md:2: CodeActAgent is an agent in Python: take another name",
        "bytes.md:1: it is not UTF-8 text",
        "folder.md:1: it cannot be read: Is a directory",
        f"large.md:1: it is larger than {LONGEST} bytes: shorten it",
        "pipe.md:1: it is a pipe, not a file",
        "twice.md:2: Good.md has the name Good as well: rename one",
    ]
    with pytest.raises(AgentNotFoundError, match=r"bytes.md:1: it is not UTF-8 text"):
        find("bytes")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("agent: Nobody\n", "there is no agent 'Nobody' in Python"),
        ("agent: MathAgent\n", "there is no agent 'MathAgent' in Python"),
        ("tools: [bash, fly]\n", ":4: CodeActAgent has no tool 'fly'; it has: bash, jobs"),
        ("agent: DirectAgent\ntools: [bash]\n", ":5: DirectAgent has a fixed set of tools: remove tools"),
        ("agent: DirectAgent\noutputs: {a: string}\n", ":5: DirectAgent has a fixed set of tools: remove outputs"),
        ("agent: DirectAgent\ncontext: [ls]\n", ":5: DirectAgent has a fixed set of tools: remove context"),
    ],
)
def test_what_the_reused_agent_lacks_is_told(user: Path, keys: str, told: str) -> None:
    agent_file(user, "Mine", keys)
    with pytest.raises((AgentNotFoundError, MicroFileError)) as error:
        find("Mine")
    assert told in str(error.value)
    assert next(agent for agent in descriptions() if agent.name == "Mine").about.startswith("cannot be loaded: ")


def test_a_file_is_an_agents_name(tmp_path: Path) -> None:
    assert find(str(agent_file(tmp_path, "Mine"))).__name__ == "Mine"
    with pytest.raises(MicroFileError, match=r"missing.md:1: it cannot be read: No such file"):
        find(str(tmp_path / "missing.md"))
