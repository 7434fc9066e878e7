"""Configurations in SWE-agent's shape: what they may say, and what is said about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from handiwork.agents.registry import find
from handiwork.agents.swe_agent import SWEAgent, load_agent
from handiwork.agents.swe_agent.bundles import SHIPPED, Bundle
from handiwork.agents.swe_agent.config import DEFAULT, default_config, load_config
from handiwork.agents.swe_agent.templates import SWEConfigError, render
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
  templates: {shell_check_error_template: x, disable_image_processing: false}
  tools: {propagate_env_variables: [KEY]}
  history_processors: [{type: image_parsing}, {type: closed_window}]
env: {deployment: {image: x}}
"""
    config = load_config(write(tmp_path, text))
    assert sorted(note.partition(": ")[0] for note in config.ignored) == [
        *("agent.action_sampler", "agent.history_processors.image_parsing", "agent.model"),
        *("agent.templates.shell_check_error_template", "agent.tools.propagate_env_variables", "env"),
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
        ("agent: {templates: {demonstrations: [a.traj]}}", "need a demonstration_template, or put_demos_in_history"),
        (
            "agent: {templates: {demonstrations: [a.traj], put_demos_in_history: true}}",
            "there is no demonstration a.traj near ",
        ),
        (
            "agent: {templates: {demonstrations: [mine.yaml], put_demos_in_history: true}}",
            "mine.yaml is no trajectory of SWE-agent: history: Field required",
        ),
        ("agents: {}", "unknown key agents"),
        ("[]", "must hold keys"),
        ("a: [", "cannot be read"),
        ("agent: {tools: {bundles: [{path: submit}, {path: tools/submit}]}}", "two bundles have the name submit"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SWEConfigError, match=problem):
        load_agent(write(tmp_path, text))


BUNDLE = "tools: {search_dir: {signature: 'search_dir <term>', arguments: [{name: term, argument_format: '%s'}]}}"
ESCAPE = '{{ cycler.__init__.__globals__.os.system("touch %s") }}'


def test_the_default_has_the_shipped_bundles_also_inside_a_project_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / ".venv/handiwork/default.yaml"
    for folder in (tmp_path / ".git", tmp_path / "search", installed.parent):
        folder.mkdir(parents=True)
    (tmp_path / "search/config.yaml").write_text(BUNDLE % "{{value}}")
    installed.write_bytes(DEFAULT.read_bytes())
    monkeypatch.setattr("handiwork.agents.swe_agent.config.DEFAULT", installed)
    monkeypatch.chdir(tmp_path)
    assert {bundle.path.parent for bundle in load_config(installed).bundles} == {SHIPPED}


def test_bundles_are_looked_up_to_the_root_of_the_repository_and_not_above_it(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    for folder in (clone / ".git", clone / "config", clone / "tools/search", tmp_path / "tools/submit"):
        folder.mkdir(parents=True)
    for folder in (clone / "tools/search", tmp_path / "tools/submit"):
        (folder / "config.yaml").write_text(BUNDLE % "{{value}}")
    file = write(clone / "config", "agent: {tools: {bundles: [{path: tools/search}]}}")
    assert [bundle.path for bundle in load_config(file).bundles] == [clone / "tools/search"]
    file = write(clone / "config", "agent: {tools: {bundles: [{path: tools/submit}]}}")
    assert [bundle.path for bundle in load_config(file).bundles] == [SHIPPED / "submit"]


def test_a_template_of_a_bundle_runs_nothing_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(BUNDLE % ESCAPE % (tmp_path / "witness"))
    (tool,) = Bundle(tmp_path).tools
    with pytest.raises(SWEConfigError, match=r"the template .* fails: access to attribute '__init__'"):
        tool.command({"term": "x"})
    assert not (tmp_path / "witness").exists()


def test_a_link_out_of_a_bundle_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    (tmp_path / "mine/bin").mkdir(parents=True)
    (tmp_path / "mine/config.yaml").write_text(BUNDLE % "{{value}}")
    (tmp_path / "mine/bin/search_dir").symlink_to("../../secret")
    with pytest.raises(SWEConfigError, match="search_dir is a link that leads out of the bundle"):
        _ = Bundle(tmp_path / "mine").files


def test_a_state_command_may_print_a_variable_of_any_name() -> None:
    assert render("{{template}} {{values}}", template="one", values="two") == "one two"
