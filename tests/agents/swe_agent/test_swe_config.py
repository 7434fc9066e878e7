"""Configurations in SWE-agent's shape: what they may say, and what is said about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from handiwork.agents.registry import find
from handiwork.agents.swe_agent import SWEAgent, load_agent
from handiwork.agents.swe_agent.bundles import SHIPPED, Bundle, SWEConfigError
from handiwork.agents.swe_agent.config import default_config, load_config
from handiwork.session.config import agent_name


def write(folder: Path, text: str) -> Path:
    file = folder / "mine.yaml"
    file.write_text(text)
    return file


def test_a_configuration_file_is_the_name_of_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, "agent: {max_requeries: 1, tools: {bundles: [{path: submit}]}}")
    monkeypatch.chdir(tmp_path)
    assert agent_name("mine.yaml") == str(file)
    agent = find(str(file))
    assert issubclass(agent, SWEAgent)
    assert agent.__name__ == "SWEAgent"
    assert agent.config is not None
    assert agent.config.max_requeries == 1
    assert find("SWEAgent") is SWEAgent


def test_the_shipped_configuration_loads_whole() -> None:
    config = default_config()
    assert not config.ignored
    names = [tool.name for tool in config.commands]
    assert names == [
        *("open", "goto", "scroll_down", "scroll_up", "create"),
        *("search_dir", "search_file", "find_file", "edit", "submit"),
    ]
    for path in SHIPPED.glob("*/config.yaml"):
        bundle = Bundle(path.parent)
        assert all((path.parent / "bin" / tool.name).is_file() for tool in bundle.tools)


def test_a_shipped_bundle_stands_in_for_a_published_name(tmp_path: Path) -> None:
    config = load_config(
        write(tmp_path, "agent: {tools: {bundles: [{path: tools/search, hidden_tools: [find_file]}]}}")
    )
    assert [tool.name for tool in config.commands] == ["search_dir", "search_file"]
    assert config.bundles[0].path == SHIPPED / "search"


def test_keys_without_effect_are_listed(tmp_path: Path) -> None:
    text = """
agent:
  model: {name: x}
  action_sampler: {type: ask_colleagues}
  templates: {put_demos_in_history: true, demonstrations: [a.traj], disable_image_processing: false}
  tools: {propagate_env_variables: [KEY]}
  history_processors: [{type: image_parsing}, {type: closed_window}]
env: {deployment: {image: x}}
"""
    config = load_config(write(tmp_path, text))
    assert sorted(note.partition(": ")[0] for note in config.ignored) == [
        *("agent.action_sampler", "agent.history_processors.image_parsing", "agent.model"),
        *("agent.templates.demonstrations", "agent.templates.put_demos_in_history"),
        *("agent.tools.propagate_env_variables", "env"),
    ]
    assert [processor.type for processor in config.history_processors] == ["closed_window"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("agent: {tools: {bundles: [{path: nowhere}]}}", "no bundle nowhere.*shipped: registry, search"),
        ("agent: {toolz: {}}", "toolz: Extra inputs"),
        ("agent: {type: retry}", "type: Input should be 'default'"),
        ("agent: {tools: {parse_function: {type: edit_format}}}", "parse_function.type: Input should be 'auto'"),
        ("agent: {history_processors: [{type: other}]}", "history_processors"),
        ("agents: {}", "unknown key agents"),
        ("[]", "must hold keys"),
        ("a: [", "cannot be read"),
        ("agent: {tools: {bundles: [{path: submit}, {path: tools/submit}]}}", "two bundles have the name submit"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SWEConfigError, match=problem):
        load_agent(write(tmp_path, text))
