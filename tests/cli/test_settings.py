"""Settings: the user's file < environment variables < flags; what nothing reads is an error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from handiwork.settings import OTHER_VARIABLES, Settings, SettingsError, check_flags, load, load_hooks
from tests.cli.program import Program

VALUES = {
    "model": ("openai:file", "openai:variable", "openai:flag"),
    "base_url": ("http://file/v1", "http://variable/v1", "http://flag/v1"),
    "agent": ("FileAgent", "VariableAgent", "FlagAgent"),
    "protocol": ("native", "json", "text"),
    "sandbox": ("none", "bubblewrap", "none"),
    "image": ("file:1", "variable:1", "flag:1"),
    "mount_ro": (("/file",), ("/variable", "/two"), ("/flag",)),
    "allow_net": (("pypi",), ("npm", "*.example.org:8080"), ("all",)),
    "secrets": (("FILE",), ("VARIABLE", "TWO=@/two"), ("FLAG",)),
    "skills": (("/file.py",), ("/variable.py", "two"), ("/flag.py",)),
    "confirmation": ("always", "never", "risky"),
    "plan_mode": (True, False, True),
    "max_iterations": (1, 2, 3),
    "max_cost": (0.1, 0.2, 0.3),
    "max_tokens": (10, 20, 30),
    "max_time": (1.5, 2.5, 3.5),
    "requests_per_minute": (1, 2, 3),
    "tokens_per_minute": (10, 20, 30),
    "snapshots": (1, 2, 3),
}
OTHERS = {"model": "openai:any"}
"""Set besides, as an address belongs to a model on a server."""


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    for key in (*Settings.model_fields, "debug"):
        monkeypatch.delenv(f"HANDIWORK_{key.upper()}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def write(text: str) -> None:
        (tmp_path / "handiwork").mkdir(exist_ok=True)
        (tmp_path / "handiwork/config.toml").write_text(text)

    return write


@pytest.mark.parametrize("host", ["*", "https://example.org", "1.2.3.4", "example.org:ssh"])
def test_what_is_no_host_is_told_so(host: str) -> None:
    with pytest.raises(SettingsError, match=r"--allow-net: .*(host|address|beginning)"):
        load({"model": "openai:any", "allow_net": [host]})


def as_toml(value: object) -> str:
    return json.dumps(value)


def test_every_key_is_tested() -> None:
    assert {*VALUES, "mcp", "forges"} == set(Settings.model_fields)


def test_mcp_servers_are_tables_of_the_file_or_json_in_the_variable(
    config: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    config('[mcp.time]\ncommand = "mcp-server-time"\nargs = ["--local-timezone", "UTC"]\n')
    assert load({}).mcp["time"].args == ("--local-timezone", "UTC")
    monkeypatch.setenv("HANDIWORK_MCP", '{"remote": {"url": "https://example.org/mcp"}}')
    assert load({}).mcp["remote"].url == "https://example.org/mcp"
    config("[mcp.'no name']\ncommand = 'a'\n")
    monkeypatch.delenv("HANDIWORK_MCP")
    with pytest.raises(SettingsError, match=r"config\.toml: mcp\.no name"):
        load({})
    monkeypatch.setenv("HANDIWORK_MCP", '{"remote": {"ulr": "https://example.org/mcp"}}')
    with pytest.raises(SettingsError, match=r"config\.toml: mcp\.no name.*\nHANDIWORK_MCP: mcp\.remote\.ulr: "):
        load({})


@pytest.mark.parametrize("key", VALUES)
def test_a_flag_wins_over_a_variable_and_that_over_the_file(
    key: str, config: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_file, in_variable, in_flag = VALUES[key]
    flags = {other: value for other, value in OTHERS.items() if other != key}
    config(f"{key} = {as_toml(in_file)}\n")
    assert getattr(load(flags), key) == in_file
    separator = "," if key == "allow_net" else ":"
    text = separator.join(in_variable) if isinstance(in_variable, tuple) else str(in_variable)
    monkeypatch.setenv(f"HANDIWORK_{key.upper()}", text)
    assert getattr(load(flags), key) == in_variable
    assert getattr(load({**flags, key: in_flag}), key) == in_flag


def test_without_any_settings_the_local_model_runs_in_the_sandbox() -> None:
    settings = load({})
    assert (settings.model, settings.sandbox) == ("local:qwen2.5-coder-1.5b", "bubblewrap")
    assert settings.limits.iterations == 100


def test_an_image_means_docker_and_a_flag_for_another_sandbox_means_no_image(config: Callable[[str], None]) -> None:
    assert load({"image": "debian:12"}).sandbox == "docker"
    config('image = "debian:12"\n')
    assert (load({}).sandbox, load({}).image) == ("docker", "debian:12")
    for kind in ("bubblewrap", "none"):
        settings = load({"sandbox": kind})
        assert (settings.sandbox, settings.image) == (kind, None)
    config('sandbox = "none"\n')
    assert load({"image": "debian:12"}).sandbox == "docker"


def test_an_image_and_a_sandbox_that_do_not_go_together_are_told(config: Callable[[str], None]) -> None:
    with pytest.raises(SettingsError, match="not none: leave one of them out"):
        load({"image": "debian:12", "sandbox": "none"})
    with pytest.raises(SettingsError, match="docker needs an image: add --image NAME"):
        load({"sandbox": "docker"})
    config('image = "debian:12"\nsandbox = "bubblewrap"\n')
    with pytest.raises(SettingsError, match="not bubblewrap"):
        load({})


def test_an_unknown_key_of_the_file_is_named_with_the_known_ones(config: Callable[[str], None]) -> None:
    config('modle = "openai:x"\n')
    with pytest.raises(SettingsError, match=r"config\.toml: unknown key 'modle'; known: agent, allow_net"):
        load({})


def test_an_unknown_variable_is_named_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDIWORK_MODLE", "openai:x")
    with pytest.raises(SettingsError, match=r"variable HANDIWORK_MODLE; known: .*HANDIWORK_MODEL"):
        load({})


@pytest.mark.parametrize("name", sorted(OTHER_VARIABLES))
def test_variables_that_are_no_settings_are_allowed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    load({})


def test_a_value_that_does_not_fit_is_told_with_its_place(
    config: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    config("max_tokens = 0\n")
    monkeypatch.setenv("HANDIWORK_MAX_COST", "much")
    with pytest.raises(SettingsError) as caught:
        load({"max_time": -1})
    text = str(caught.value)
    assert "config.toml: max_tokens: " in text
    assert "HANDIWORK_MAX_COST: " in text
    assert "--max-time: " in text
    assert "not 'much'" in text


def test_a_flag_that_does_not_fit_is_told_whatever_is_set_elsewhere(config: Callable[[str], None]) -> None:
    config("max_tokens = 0\n")
    check_flags({"confirmation": "risky", "max_cost": None})
    with pytest.raises(SettingsError, match=r"^--confirm: input should be 'never', 'risky' or 'always', not 'x'$"):
        check_flags({"confirmation": "x"})


def test_a_file_that_is_not_toml_is_told(config: Callable[[str], None]) -> None:
    config("model is openai\n")
    with pytest.raises(SettingsError, match=r"config\.toml cannot be read"):
        load({})


def test_an_address_belongs_to_a_model_on_a_server(
    config: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError, match=r"--base-url .* add --model"):
        load({"base_url": "http://host/v1"})
    monkeypatch.setenv("HANDIWORK_BASE_URL", "http://host/v1")
    assert load({"model": "local:qwen2.5-coder-1.5b"}).base_url is None
    assert load({"model": "anthropic:one"}).base_url == "http://host/v1"
    with pytest.raises(SettingsError, match=r"HANDIWORK_BASE_URL needs a model on a server, .* add HANDIWORK_MODEL"):
        load({})
    monkeypatch.delenv("HANDIWORK_BASE_URL")
    config('base_url = "http://host/v1"\n')
    with pytest.raises(SettingsError, match=r"config\.toml: base_url needs a model on a server, .* add model"):
        load({})


def test_a_model_of_another_provider_is_not_sought_on_the_server_of_the_settings(
    config: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = "http://127.0.0.1:9/v1"
    config(f'model = "qwen3"\nbase_url = "{server}"\n')
    kept = [load({"model": model}).base_url for model in (None, "llama3:8b", "anthropic:one")]
    assert kept == [server, server, None]
    assert load({"model": "openai:one", "base_url": server}).base_url == server
    config(f'model = "openai:one"\nbase_url = "{server}"\n')
    assert [load({"model": model}).base_url for model in ("openai:two", "anthropic:one")] == [server, None]
    monkeypatch.setenv("HANDIWORK_MODEL", "anthropic:one")
    assert load({}).base_url is None
    monkeypatch.setenv("HANDIWORK_BASE_URL", server)
    assert [load({"model": model}).base_url for model in (None, "openai:one")] == [server, None]


@pytest.mark.parametrize("name", ["HANDIWORK_MCP", "HANDIWORK_FORGES"])
def test_a_variable_of_a_table_that_is_not_json_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "x")
    with pytest.raises(SettingsError, match=f"{name} is not a JSON object: correct it"):
        load({})


def test_the_program_takes_them_from_the_file(program: Program) -> None:
    program.settings.parent.mkdir(parents=True)
    program.settings.write_text('sandbox = "none"\nagent = "NobodyAgent"\n')
    run = program("run", "greet")
    assert run.returncode == 2
    assert "no agent 'NobodyAgent'" in run.stderr


def test_the_program_refuses_an_unknown_variable(program: Program) -> None:
    for command in (("run", "greet"), ("resume",)):
        run = program(*command, HANDIWORK_MODLE="x")
        assert (run.returncode, run.stdout) == (2, "")
        assert "HANDIWORK_MODLE" in run.stderr


def test_hooks_stand_beside_the_settings(config: Callable[[str], None]) -> None:
    assert load_hooks() == ()
    config('max_tokens = 5\n[[hooks]]\nevent = "session_end"\ncommand = "true"\nwhere = "host"\n')
    assert load({}).max_tokens == 5
    (hook,) = load_hooks()
    assert (hook.event, hook.where, hook.timeout, hook.title) == ("session_end", "host", 60, "true")


@pytest.mark.parametrize(
    ("event", "fields", "problem"),
    [
        ("stop", {}, "event: input should be 'session_start', 'before_action', 'after_action'"),
        ("session_end", {"command": " "}, "command: it must be a shell command, not ' '"),
        ("session_end", {"wen": 1}, "unknown key 'wen'; known: event, command"),
        ("session_end", {"matcher": "bash"}, "a session_end hook has nothing to match"),
        ("before_action", {"matcher": "bash, edit"}, "the matcher 'bash, edit' is not understood: write"),
        ("before_action", {"matcher": "bash("}, "the matcher 'bash(' is not understood"),
        ("before_finish", {"matcher": "A(b)"}, "the matcher of a before_finish hook has names of agents"),
        ("before_action", {"max_refusals": 1}, "max_refusals is for before_finish hooks"),
        ("session_end", {"timeout": 0}, "timeout: input should be greater than 0, not 0"),
        ("session_end", {"name": "a\nb"}, "name: it must be one line"),
    ],
)
def test_a_hook_that_does_not_fit_is_told_with_its_number(
    config: Callable[[str], None], event: str, fields: dict[str, object], problem: str
) -> None:
    lines = [f"{key} = {as_toml(value)}\n" for key, value in {"event": event, "command": "true", **fields}.items()]
    config(f'[[hooks]]\nevent = "session_start"\ncommand = "true"\n[[hooks]]\n{"".join(lines)}')
    with pytest.raises(SettingsError) as caught:
        load_hooks()
    assert f"config.toml: hook 2: {problem}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('hooks = "true"\n', "hooks: write each hook as a table, under a line [[hooks]]"),
        ('[[hooks]]\nevent = "session_end"\n', "hook 1: command: field required"),
        ('[[hooks]]\nevent = "session_end"\ncommand = "x"\n' * 2, "two session_end hooks are called 'x': give each"),
        ("[[hooks]\n", " cannot be read: "),
    ],
)
def test_hooks_that_are_no_hooks_are_told(config: Callable[[str], None], text: str, problem: str) -> None:
    config(text)
    with pytest.raises(SettingsError) as caught:
        load_hooks()
    assert problem in str(caught.value)
