"""``handiwork config`` and ``handiwork completion``."""

from __future__ import annotations

import json
import stat
import subprocess

import pytest

from handiwork.settings import Settings, SettingsError, parsed
from tests.cli.program import HANDIWORK, Program, finish

pytestmark = pytest.mark.slow

slow = pytest.mark.slow


def rows(program: Program, *arguments: str, **environment: str) -> dict[str, dict[str, str]]:
    shown = program("config", *arguments, "--json", **environment)
    assert shown.returncode == 0, shown.stderr
    return {row["name"]: row for row in map(json.loads, shown.stdout.splitlines())}


@slow
def test_every_setting_is_shown_with_its_source_and_meaning(program: Program) -> None:
    program.settings.parent.mkdir(parents=True)
    program.settings.write_text("# mine\nmax_iterations = 7\n")
    shown = rows(program, HANDIWORK_ALLOW_NET="pypi,example.org")
    assert set(shown) == set(Settings.model_fields)
    assert shown["max_iterations"]["source"] == str(program.settings)
    assert (shown["allow_net"]["value"], shown["allow_net"]["source"]) == ("pypi example.org", "HANDIWORK_ALLOW_NET")
    assert shown["agent"]["source"] == "default"
    assert all(row["about"] for row in shown.values())
    one = program("config", "max_iterations").stdout
    assert one.startswith("max_iterations")
    assert "number of steps" in one


@slow
def test_a_setting_is_set_and_unset_and_the_rest_of_the_file_stays(program: Program) -> None:
    program.settings.parent.mkdir(parents=True)
    program.settings.write_text("# mine\nmax_iterations = 7  # few\n")
    model = program.script(finish())
    assert program("config", "model", f"scripted:../{model.rpartition('/')[2]}").returncode == 0
    assert program("config", "allow_net", "pypi", "example.org").returncode == 0
    assert program("config", "max_cost", "2.5").returncode == 0
    text = program.settings.read_text()
    assert "# mine\nmax_iterations = 7  # few\n" in text
    shown = rows(program)
    assert [shown[name]["value"] for name in ("allow_net", "max_cost")] == ["pypi example.org", "2.5"]
    assert shown["model"]["value"].startswith("scripted:/")
    assert program("run", "greet", "--sandbox", "none").returncode == 0
    assert program("config", "max_cost", "--unset").returncode == 0
    assert rows(program, "max_cost")["max_cost"]["source"] == "default"
    overridden = program("config", "max_cost", "3", HANDIWORK_MAX_COST="9")
    assert "HANDIWORK_MAX_COST overrides it" in overridden.stderr


def test_a_model_of_another_provider_takes_the_server_of_the_model_before_out_of_the_file(program: Program) -> None:
    program.settings.parent.mkdir(parents=True)
    program.settings.write_text('model = "qwen3"\nbase_url = "http://localhost:8000/v1"\n')
    assert program("config", "model", "llama3").returncode == 0
    assert "base_url" in program.settings.read_text()
    assert "base_url is no longer set" in program("config", "model", "anthropic:one").stderr
    assert program.settings.read_text() == 'model = "anthropic:one"\n'


def test_a_secret_is_named_with_a_file_that_every_folder_finds_and_never_by_its_value(program: Program) -> None:
    refused = program("config", "secrets", "TOKEN=an0ther-secret-value")
    assert refused.returncode == 2
    assert "the value of TOKEN does not belong on the command line" in refused.stderr
    assert not program.settings.exists()
    assert program("config", "secrets", "TOKEN=@token.txt", "OTHER").returncode == 0
    assert program.settings.read_text() == f'secrets = ["TOKEN=@{program.workspace}/token.txt", "OTHER"]\n'


def test_unsetting_what_is_not_set_writes_no_file(program: Program) -> None:
    assert program("config", "max_cost", "--unset").returncode == 0
    assert not program.settings.exists()


def test_a_settings_file_stays_a_link_and_private(program: Program) -> None:
    real = program.settings.parent / "dotfiles.toml"
    real.parent.mkdir(parents=True)
    real.write_text("max_iterations = 7\n")
    real.chmod(0o600)
    program.settings.symlink_to(real.name)
    assert program("config", "max_cost", "3").returncode == 0
    assert program.settings.is_symlink()
    assert "max_cost" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "words", "complaint"),
    [
        ("max_iterations", ["0"], "max_iterations: Input should be greater than or equal to 1, not '0'"),
        ("max_iterations", ["many"], "max_iterations: Input should be a valid integer"),
        ("confirmation", ["sometimes"], "confirmation: Input should be 'never', 'risky' or 'always'"),
        ("allow_net", ["http://a"], "allow_net: "),
        ("model", ["a", "b"], "model takes one value, not 2"),
    ],
)
def test_a_value_that_a_setting_cannot_have_is_refused(name: str, words: list[str], complaint: str) -> None:
    with pytest.raises(SettingsError, match=f"^{complaint}"):
        parsed(name, words)


@slow
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("colour",), "unknown setting 'colour'; known: "),
        (("max_cost", "0"), "max_cost: Input should be greater than 0, not '0'"),
        (("mcp", "x"), "mcp is a table: write [mcp] in "),
        (("--unset",), "--unset takes the name of one setting"),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_is_written(
    program: Program, arguments: tuple[str, ...], complaint: str
) -> None:
    refused = program("config", *arguments)
    assert refused.returncode == 2
    assert complaint in refused.stderr
    assert not program.settings.exists()


@slow
def test_a_shell_completes_commands_options_agents_and_sessions(program: Program) -> None:
    assert program.run(finish()).returncode == 0
    script = program("completion", "bash").stdout

    def completed(line: str) -> list[str]:
        words = line.split(" ")
        shell = f"{script}\nCOMP_WORDS=({line})\nCOMP_CWORD={len(words) - 1}\n_handiwork_completion {HANDIWORK}\n"
        done = subprocess.run(
            ["bash", "-c", shell + 'printf "%s\\n" "${COMPREPLY[@]}"'],
            env=program.environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.split()

    assert completed("handiwork res") == ["resume"]
    assert "--max-cost" in completed("handiwork run --max-")
    assert completed("handiwork run --agent CodeAct") == ["CodeActAgent"]
    (session,) = completed("handiwork show ''")
    assert len(session) == 16
    for shell in ("zsh", "fish"):
        assert "_HANDIWORK_COMPLETE" in program("completion", shell).stdout
