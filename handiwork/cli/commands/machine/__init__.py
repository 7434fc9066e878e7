"""The options of the commands about the settings and this machine's agents, models, hooks and more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from handiwork.cli.command import command
from handiwork.cli.completion import agent_names, setting_names
from handiwork.cli.options import AsJson, BaseUrl, ModelName


def add_to(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app, "machine.config:config")(config)
    command(app)(completion)
    command(app, "context:context")(context)
    command(app, "machine.listing:models")(models)
    command(app, "machine.listing:agents")(agents)
    command(app, "hooks:hooks")(hooks)
    command(app, "machine.doctor:doctor")(doctor)


def config(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A setting.", show_default=False, autocompletion=setting_names),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="VALUE", help="Its new value; some settings take several.", show_default=False),
    ] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Remove the setting from your settings file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show every setting with its value and where that comes from, or set one in your settings file.

    Flags of a command override environment variables like HANDIWORK_MODEL, which override the settings file.

    \b
    handiwork config
    handiwork config max_cost
    handiwork config max_cost 2.5
    handiwork config allow_net pypi npm
    handiwork config max_cost --unset
    """


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Your shell.", show_default=False)],
) -> None:
    """Print the script that lets your shell complete commands, options, sessions, agents and models.

    \b
    handiwork completion bash > ~/.local/share/bash-completion/completions/handiwork
    handiwork completion zsh > "${fpath[1]}/_handiwork"
    handiwork completion fish > ~/.config/fish/completions/handiwork.fish
    """
    from typer.completion import get_completion_script  # pyright: ignore[reportPrivateImportUsage] (it has no public name)

    typer.echo(get_completion_script(prog_name="handiwork", complete_var="_HANDIWORK_COMPLETE", shell=shell))


def context(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The directory that a session would work on.", show_default=False)
    ] = Path(),
    as_json: AsJson = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Show each text that waits for you, or its changes, and ask to accept it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --accept: accept without showing and asking.")] = False,
) -> None:
    """Show which AGENTS.md, CLAUDE.md, skills and devcontainer.json a session loads or leaves out, and why.

    Texts of a repository load only after you have accepted them; when they change, you are asked again.

    \b
    handiwork context
    handiwork context ~/src/project --accept
    handiwork context --json | jq 'select(.state == "loads").path'
    """


def models() -> None:
    """List the models you can use now, and how to name one."""


def agents(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Only these agents.", show_default=False, autocompletion=agent_names),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Let each agent do one small task with the model, and show which succeeded.")
    ] = False,
    model: ModelName = None,
    base_url: BaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """List the installed agents and the current folder's accepted ones, with their inputs and outputs.

    \b
    handiwork agents --check
    handiwork agents --check CommitWriter TypoFixer --model anthropic:claude-sonnet-4-5
    """


def hooks(
    point: Annotated[
        Literal["session_start", "before_action", "after_action", "before_finish", "session_end"] | None,
        typer.Option("--try", help="Run the hooks of this event with a sample, in a sandbox on a copy of this folder."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List your hooks with the actions that each matches, or try them out.

    Hooks are commands in [[hooks]] tables of your settings file, which run before and after actions, before an agent
    finishes, and at a session's begin and end.

    \b
    handiwork hooks
    handiwork hooks --try before_finish
    """


def doctor(as_json: AsJson = False) -> None:
    """Check whether this machine can run tasks, and suggest a fix for each problem."""
