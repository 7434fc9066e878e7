"""The program ``handiwork``: what its commands are called and what they take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from handiwork.cli import evals
from handiwork.cli.guard import guarded

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

app.add_typer(evals.app, name="eval")

Session = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION",
        help="The session's id, or the first characters of it; without one the newest.",
        show_default=False,
    ),
]
Workspace = Annotated[Path, typer.Option(help="The directory to work on; the agent gets a copy of it.")]
InPlace = Annotated[bool, typer.Option("--in-place", help="Work on the directory itself instead of a copy.")]
AgentName = Annotated[
    str | None, typer.Option("--agent", help="An agent of `handiwork agents`, or your own as file.py:Class.")
]
ModelName = Annotated[
    str | None, typer.Option("--model", help="Like anthropic:NAME, openai:NAME, local:NAME; see `handiwork models`.")
]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", help="The OpenAI-compatible server that has the model, like http://HOST/v1.")
]
SandboxKind = Annotated[
    str | None,
    typer.Option("--sandbox", help="bubblewrap, docker, or none: this machine, unprotected."),
]
Image = Annotated[
    str | None, typer.Option("--image", help="Run commands in this Docker image, any that is for linux/amd64.")
]
MountRo = Annotated[
    list[str] | None, typer.Option("--mount-ro", help="A path the sandbox may read besides; can be repeated.")
]
MaxIterations = Annotated[int | None, typer.Option("--max-iterations", help="Pause after this many steps.")]
MaxCost = Annotated[float | None, typer.Option("--max-cost", help="Pause after this many US dollars.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", help="Pause after this many tokens, in and out.")]
MaxTime = Annotated[float | None, typer.Option("--max-time", help="Pause after this many seconds of running.")]
AllowNet = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-net",
        help="A host the sandbox may reach, like example.org or *.example.org, or pypi, npm, debian, all; "
        "can be repeated. Ports 80 and 443, another as example.org:8080.",
    ),
]
Confirm = Annotated[
    str | None,
    typer.Option("--confirm", help="Ask before actions: never, risky (what leaves the sandbox), always."),
]
SecretNames = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="NAME[=@FILE]",
        help="A secret, from the environment variable NAME or from FILE, for the commands and cells that name it as "
        '$NAME, ${NAME} or "NAME"; neither the model nor the log sees it. Can be repeated.',
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON lines on stdout and nothing else; never ask.")]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"handiwork {version('handiwork')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Handiwork lets an AI agent work on your code, in a sandbox, with the model of your choice.

    \b
    handiwork run "make the failing test pass"     in a copy of the current directory
    handiwork diff                                 what the newest session changed
    handiwork apply                                take it over into your directory

    Settings come from ~/.config/handiwork/config.toml, then from variables like HANDIWORK_MODEL, then from flags.

    \b
    Exit codes: 0 finished, 1 failed, rejected, stuck or waiting for your answer, 2 wrong use,
    3 limit reached, 4 model, sandbox, disk or log failed, 130 interrupted.
    """


@app.command()
def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What is to be done, in your words.", show_default=False)],
    workspace: Workspace = Path("."),
    in_place: InPlace = False,
    agent: AgentName = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    sandbox: SandboxKind = None,
    image: Image = None,
    mount_ro: MountRo = None,
    secret: SecretNames = None,
    allow_net: AllowNet = None,
    confirm: Confirm = None,
    max_iterations: MaxIterations = None,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    as_json: AsJson = False,
) -> None:
    """Have an agent carry out TASK and watch it.

    The agent works on a copy of the workspace: your files change only when you say `handiwork apply`.
    Ctrl-C interrupts it and asks what next; a second Ctrl-C stops it. /help at a question says what else can be
    answered.

    \b
    handiwork run "make the failing test pass"
    handiwork run "add type hints" --workspace src --model anthropic:claude-sonnet-4-5 --max-cost 1
    handiwork run "explain main.py" --model qwen3 --base-url http://localhost:8000/v1
    handiwork run "fix issue 7" --json --max-time 600 > events.jsonl
    handiwork run "list my repositories with curl" --secret GITHUB_TOKEN --confirm risky
    """
    flags: dict[str, Any] = {
        "agent": agent,
        "model": model,
        "base_url": base_url,
        "sandbox": sandbox,
        "image": image,
        "mount_ro": mount_ro,
        "secrets": secret,
        "allow_net": allow_net,
        "confirmation": confirm,
        "max_iterations": max_iterations,
        "max_cost": max_cost,
        "max_tokens": max_tokens,
        "max_time": max_time,
    }

    def command() -> Any:
        from handiwork.cli.run import run

        return run(task, workspace, in_place, as_json, flags)

    guarded(command)


@app.command()
def resume(
    session: Session = None,
    message: Annotated[str | None, typer.Option("--message", help="What to tell the agent first.")] = None,
    rewind: Annotated[
        bool, typer.Option("--rewind", help="Have an agent that is stuck forget its loop first; files stay.")
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
    """Go on with a session that was paused, killed, asked something, reached a limit or needs more done.

    It keeps its agent, model, sandbox and limits, but for those given here.

    \b
    handiwork resume
    handiwork resume 3fa9 --message "the tests are in tests/unit"
    handiwork resume 3fa9 --max-iterations 200
    """
    flags: dict[str, Any] = {
        "model": model,
        "base_url": base_url,
        "secrets": secret,
        "allow_net": allow_net,
        "confirmation": confirm,
        "max_iterations": max_iterations,
        "max_cost": max_cost,
        "max_tokens": max_tokens,
        "max_time": max_time,
    }

    def command() -> Any:
        from handiwork.cli.run import resume

        return resume(session, message, rewind, as_json, flags)

    guarded(command)


@app.command()
def approve(
    session: Session = None,
    reject: Annotated[bool, typer.Option("--reject", help="Say no instead.")] = False,
    always: Annotated[
        bool, typer.Option("--always", help="Allow it, and what is like it, from now on in this session.")
    ] = False,
    comment: Annotated[str | None, typer.Option("--comment", help="With --reject: why, for the agent.")] = None,
) -> None:
    """Answer what a session asks before it does it; `handiwork resume` then goes on.

    \b
    handiwork approve 3fa9
    handiwork approve 3fa9 --reject --comment "not on the main branch"
    """

    def command() -> Any:
        from handiwork.cli.approve import approve

        return approve(session, reject, always, comment)

    guarded(command)


@app.command()
def allow(
    hosts: Annotated[
        list[str], typer.Argument(metavar="HOST...", help="As --allow-net of run takes them.", show_default=False)
    ],
    session: Annotated[
        str | None, typer.Option("--session", help="Its id, or the first characters of it; without one the newest.")
    ] = None,
) -> None:
    """Let a session's sandbox reach more hosts, also while it runs.

    \b
    handiwork allow example.org --session 3fa9
    handiwork allow pypi '*.example.org'
    """

    def command() -> Any:
        from handiwork.cli.allow import allow

        return allow(hosts, session)

    guarded(command)


@app.command()
def sessions(as_json: AsJson = False) -> None:
    """List the sessions, newest first."""

    def command() -> Any:
        from handiwork.cli.sessions import sessions

        return sessions(as_json)

    guarded(command)


@app.command()
def show(
    session: Session = None,
    as_json: AsJson = False,
    full: Annotated[bool, typer.Option("--full", help="Show every output whole.")] = False,
) -> None:
    """Show what happened in a session, step by step.

    \b
    handiwork show 3fa9 --full | less
    handiwork show 3fa9 --json | jq 'select(.type == "CmdRunAction").command'
    """

    def command() -> Any:
        from handiwork.cli.sessions import show

        return show(session, as_json, full)

    guarded(command)


@app.command()
def diff(
    session: Session = None,
    first: Annotated[int | None, typer.Option("--from", help="Only what changed after this event.")] = None,
    last: Annotated[int | None, typer.Option("--to", help="Only what changed up to this event.")] = None,
) -> None:
    """Print what a session changed, as a patch.

    \b
    handiwork diff 3fa9 > fix.patch
    handiwork diff 3fa9 --from 12 --to 20
    """

    def command() -> Any:
        from handiwork.cli.changes import diff

        return diff(session, first, last)

    guarded(command)


@app.command()
def apply(
    session: Session = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
) -> None:
    """Take a session's changes over into the workspace it was started in.

    What you changed meanwhile is merged; where that is not possible nothing is written and the conflicts are listed.
    """

    def command() -> Any:
        from handiwork.cli.changes import apply

        return apply(session, dry_run)

    guarded(command)


@app.command()
def fork(
    at: Annotated[int, typer.Option("--at", help="The number of the event from which to go on; see `show --json`.")],
    session: Session = None,
    restore: Annotated[
        str, typer.Option("--restore", help="What is to be as it was then: both, files, or conversation.")
    ] = "both",
    message: Annotated[
        str | None, typer.Option("--message", help="What to tell the agent; it goes on at once.")
    ] = None,
    agent: AgentName = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Make a new session that goes on from an event of this one, with the files as they were then.

    The session itself, and its files, stay as they are.

    \b
    handiwork fork 3fa9 --at 12
    handiwork fork 3fa9 --at 12 --model anthropic:claude-sonnet-4-5 --message "do it without the regex"
    handiwork fork 3fa9 --at 12 --restore files
    """
    if restore not in ("both", "files", "conversation"):
        raise typer.BadParameter("--restore is both, files or conversation")

    def command() -> Any:
        from handiwork.cli.forks import fork

        return fork(session, at, restore, message, as_json, {"agent": agent, "model": model, "base_url": base_url})

    guarded(command)


@app.command()
def tree(session: Session = None) -> None:
    """Show what a session was forked from, and what was forked from it."""

    def command() -> Any:
        from handiwork.cli.forks import tree

        return tree(session)

    guarded(command)


@app.command()
def gc() -> None:
    """Remove snapshots that no session needs, and the oldest where they take more room than they may."""

    def command() -> Any:
        from handiwork.cli.forks import gc

        return gc()

    guarded(command)


@app.command()
def models() -> None:
    """Say which models can be used now, and how to name one."""

    def command() -> Any:
        from handiwork.cli.listing import models

        return models()

    guarded(command)


@app.command()
def agents() -> None:
    """List the installed agents."""

    def command() -> Any:
        from handiwork.cli.listing import agents

        return agents()

    guarded(command)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Check whether this machine can run tasks, and say what to do where it cannot."""

    def command() -> Any:
        from handiwork.cli.doctor import doctor

        return doctor(as_json)

    guarded(command)


def main() -> None:
    """Run the program."""
    app()
