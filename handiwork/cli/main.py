"""The program ``handiwork``: the names, arguments and options of its commands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from handiwork.cli.command import carry_out, command
from handiwork.cli.commands import index as indexing
from handiwork.cli.commands import machine, mcp
from handiwork.cli.commands import serve as serving
from handiwork.cli.commands.eval import app as evals
from handiwork.cli.commands.swarm import app as swarms
from handiwork.cli.options import (
    AgentName,
    AllowNet,
    AsJson,
    BaseUrl,
    Confirm,
    Image,
    InPlace,
    MaxCost,
    MaxIterations,
    MaxTime,
    MaxTokens,
    ModelName,
    MountRo,
    Plan,
    Protocol,
    SandboxKind,
    SecretNames,
    Session,
    Workspace,
)

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"handiwork {version('handiwork')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Run coding agents on a sandboxed copy of your code, with the model of your choice.

    \b
    handiwork                                      talk with an agent about the current directory
    handiwork run "make the failing test pass"     work on a copy of the current directory
    handiwork diff                                 show the changes of the newest session
    handiwork apply                                apply the changes to your directory

    Flags override environment variables like HANDIWORK_MODEL, which override ~/.config/handiwork/config.toml.

    \b
    Exit codes: 0 finished, 1 failed, rejected, stuck or waiting for your answer, 2 bad usage,
    3 limit reached, 4 model, sandbox, disk or log failed, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        carry_out("conversation:conversation", {"usage": context.get_help()})


@command(app, "run:run")
def run(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK", help="The task, in your own words; - reads it from standard input.", show_default=False
        ),
    ],
    workspace: Workspace = Path("."),
    in_place: InPlace = False,
    agent: AgentName = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    protocol: Protocol = None,
    sandbox: SandboxKind = None,
    image: Image = None,
    mount_ro: MountRo = None,
    secret: SecretNames = None,
    allow_net: AllowNet = None,
    confirm: Confirm = None,
    plan: Plan = None,
    max_iterations: MaxIterations = None,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    as_json: AsJson = False,
    web: Annotated[
        bool, typer.Option("--web", help="Also show the session in the browser; the page stays until Ctrl-C.")
    ] = False,
) -> None:
    """Run an agent on TASK and show its work.

    The agent works on a copy of the workspace: your files change only when you run `handiwork apply`.
    Ctrl-C interrupts the agent and asks for your next instruction; a second Ctrl-C stops it. Type /help at a question
    to list the commands.

    \b
    handiwork run "make the failing test pass"
    handiwork run "add type hints" --workspace src --model anthropic:claude-sonnet-4-5 --max-cost 1
    handiwork run "explain main.py" --model qwen3 --base-url http://localhost:8000/v1
    handiwork run "fix issue 7" --json --max-time 600 > events.jsonl
    handiwork run "list my repositories with curl" --secret GITHUB_TOKEN --allow-net api.github.com
    """


@command(app, "best_of:best_of", name="best-of")
def best_of(
    number: Annotated[int, typer.Argument(metavar="N", min=1, max=100, help="The number of attempts.")],
    task: Annotated[str, typer.Argument(help="The task, in your own words.")],
    test: Annotated[
        str, typer.Option("--test", help="The command that tests an attempt by its exit code; it runs in the sandbox.")
    ],
    models: Annotated[
        str, typer.Option("--models", help="The models of the attempts in turn, separated by commas.")
    ] = "",
    temperature: Annotated[
        float, typer.Option("--temperature", min=0.0, max=2.0, help="The minimum sampling temperature of the models.")
    ] = 0.8,
    workspace: Workspace = Path(),
    agent: AgentName = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    protocol: Protocol = None,
    sandbox: SandboxKind = None,
    image: Image = None,
    mount_ro: MountRo = None,
    allow_net: AllowNet = None,
    secret: SecretNames = None,
    max_iterations: MaxIterations = None,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    as_json: AsJson = False,
) -> None:
    """Run N attempts at TASK from the same files, and show the best one that passes the test.

    The test runs on your files with an attempt's changes, as apply brings them, and nothing else the attempt left.
    Of the attempts that pass, the one with the fewest changed lines is the best. --max-iterations limits each
    attempt, the other limits hold for all together. Each attempt is a session: you can apply, show or resume it.

    \b
    handiwork best-of 4 "make the failing test pass" --test "pytest -q"
    handiwork best-of 3 "fix issue 7" --test "make check" --models anthropic:claude-sonnet-4-5,openai:gpt-5 --max-cost 2
    """


@command(app, "run:resume")
def resume(
    session: Session = None,
    message: Annotated[str | None, typer.Option("--message", help="A message to the agent, sent first.")] = None,
    rewind: Annotated[
        bool, typer.Option("--rewind", help="First rewind a stuck agent to before its loop; files stay.")
    ] = False,
    model: ModelName = None,
    base_url: BaseUrl = None,
    secret: SecretNames = None,
    allow_net: AllowNet = None,
    confirm: Confirm = None,
    max_iterations: MaxIterations = None,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    as_json: AsJson = False,
) -> None:
    """Resume a session that was paused or killed, asked a question, reached a limit or has more work to do.

    The session keeps its agent, model, sandbox and limits, except those given here.

    \b
    handiwork resume
    handiwork resume 3fa9 --message "the tests are in tests/unit"
    handiwork resume 3fa9 --max-iterations 200
    """


@command(app, "permissions:approve")
def approve(
    session: Session = None,
    reject: Annotated[bool, typer.Option("--reject", help="Refuse the actions instead.")] = False,
    always: Annotated[
        bool, typer.Option("--always", help="Allow these and similar actions for the rest of this session.")
    ] = False,
    comment: Annotated[str | None, typer.Option("--comment", help="With --reject: the reason, for the agent.")] = None,
) -> None:
    """Allow or refuse the actions that wait for your approval, or accept a plan; then run `handiwork resume`.

    \b
    handiwork approve 3fa9
    handiwork approve 3fa9 --reject --comment "not on the main branch"
    """


@command(app, "permissions:allow")
def allow(
    hosts: Annotated[
        list[str], typer.Argument(metavar="HOST...", help="Hosts, as for --allow-net of run.", show_default=False)
    ],
    session: Annotated[
        str | None, typer.Option("--session", help="The session's id or a prefix of it; the newest by default.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Allow the hosts even if running commands could use them without asking.")
    ] = False,
) -> None:
    """Let a session's sandbox reach more hosts, also while it runs.

    \b
    handiwork allow example.org --session 3fa9
    handiwork allow pypi '*.example.org'
    """


@command(app, "sessions:sessions")
def sessions(
    as_json: AsJson = False,
    search: Annotated[
        str,
        typer.Option(
            "--search", metavar="TEXT", help="Only sessions with TEXT in titles, messages, commands, results."
        ),
    ] = "",
    archived: Annotated[bool, typer.Option("--archived", help="The archived sessions instead of the others.")] = False,
) -> None:
    """List the sessions, newest first."""


@command(app, "sessions:archive")
def archive(
    session: Annotated[list[str], typer.Argument(metavar="SESSION...", help="Ids of sessions, or prefixes of them.")],
    undo: Annotated[bool, typer.Option("--undo", help="List the sessions again.")] = False,
) -> None:
    """Leave sessions out of lists; they keep their files and can be shown and resumed."""


@command(app, "sessions:show")
def show(
    session: Session = None,
    as_json: AsJson = False,
    full: Annotated[bool, typer.Option("--full", help="Show outputs in full.")] = False,
) -> None:
    """Show the steps of a session.

    \b
    handiwork show 3fa9 --full | less
    handiwork show 3fa9 --json | jq 'select(.type == "CmdRunAction").command'
    """


@command(app, "changes:diff")
def diff(
    session: Session = None,
    first: Annotated[int | None, typer.Option("--from", help="Show only changes after this event.")] = None,
    last: Annotated[int | None, typer.Option("--to", help="Show only changes up to this event.")] = None,
) -> None:
    """Print a session's changes as a patch.

    \b
    handiwork diff 3fa9 > fix.patch
    handiwork diff 3fa9 --from 12 --to 20
    """


@command(app, "fork:fork")
def fork(
    at: Annotated[
        int,
        typer.Option(
            "--at",
            help="The number of the event to continue from; `handiwork show` prints those of steps.",
        ),
    ],
    session: Session = None,
    restore: Annotated[
        Literal["both", "files", "conversation"],
        typer.Option("--restore", help="Restore both, files, or conversation from that event."),
    ] = "both",
    message: Annotated[
        str | None, typer.Option("--message", help="A message to the agent; the fork starts at once.")
    ] = None,
    agent: AgentName = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Make a new session that continues from an event of this one, with the files of that moment.

    The session itself, and its files, stay unchanged.

    \b
    handiwork fork 3fa9 --at 12
    handiwork fork 3fa9 --at 12 --model anthropic:claude-sonnet-4-5 --message "do it without the regex"
    handiwork fork 3fa9 --at 12 --restore files
    """


@command(app, "fork:tree")
def tree(session: Session = None) -> None:
    """Show a session's origin and its forks."""


@command(app, "fork:gc")
def gc() -> None:
    """Remove files that no session needs, and the oldest snapshots if they exceed their limit."""


serving.add_to(app)


@command(app, "changes:apply")
def apply(
    session: Session = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show which files would change, and change nothing.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Undo the session's last apply; a branch with its commits stays.")
    ] = False,
) -> None:
    """Apply a session's changes to the workspace it was started in.

    They are merged with your own edits; if that is not possible, nothing is written and the conflicts are listed.
    --undo needs the files as the apply left them; if you have edited one since, nothing is undone.
    """


@command(app, "pull_request:pull_request", name="pull-request")
def pull_request(
    session: Session = None,
    title: Annotated[str | None, typer.Option("--title", help="The title; by default the session's.")] = None,
    body: Annotated[str | None, typer.Option("--body", help="The text; by default the agent's final message.")] = None,
    base: Annotated[
        str | None, typer.Option("--base", help="The branch to merge into; by default the one checked out.")
    ] = None,
    draft: Annotated[bool, typer.Option("--draft", help="Open it as a draft, which nobody can merge yet.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the request, and send nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Open it without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Open a pull request on GitHub, or a merge request on GitLab, with a session's changes.

    Its branch is pushed to the workspace's remote; your files and your current branch stay as they are. The token is
    in GITHUB_TOKEN or GITLAB_TOKEN, or the command asks for it. --json opens the request without asking.

    \b
    handiwork pull-request 3fa9 --dry-run
    handiwork pull-request 3fa9 --title "Greet in German" --base develop --draft
    handiwork pull-request 3fa9 --json | jq -r .url
    """


indexing.add_to(app)
machine.add_to(app)


app.add_typer(evals.app, name="eval")
app.add_typer(swarms.app, name="swarm")
app.add_typer(mcp.app, name="mcp")


def main() -> None:
    """Run the program; for a shell that asks by Tab, print completions instead."""
    if "_HANDIWORK_COMPLETE" in os.environ:
        from typer.completion import completion_init  # pyright: ignore[reportPrivateImportUsage] (it has no public name)

        completion_init()
    app()
