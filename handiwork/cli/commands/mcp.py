"""``handiwork mcp``: serves sessions to other programs, and shows the MCP servers whose tools agents call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handiwork.cli.command import command
from handiwork.cli.errors import guarded
from handiwork.cli.options import AllowNet, Image, MountRo, SandboxKind, SecretNames, Session, Workspace
from handiwork.errors import Exit

if TYPE_CHECKING:
    from handiwork.events.record import MCPServerEvent

app = typer.Typer(
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    http: Annotated[
        int | None,
        typer.Option(
            "--http",
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve streamable HTTP on this port of the loopback instead; 0 picks a free one.",
        ),
    ] = None,
) -> None:
    """Serve your sessions to other programs by the Model Context Protocol, on stdin and stdout.

    Its tools start, follow and answer sessions, show their changes and apply them. The commands below are about the
    other side: the MCP servers of your settings ([mcp.NAME]), whose tools your agents may call.

    \b
    handiwork mcp                   the command that another program runs as its MCP server
    handiwork mcp --http 8643       the same at an address, for programs that have the token it prints
    handiwork mcp check             start your MCP servers and list their tools
    handiwork mcp status 3fa9       the MCP servers of a session
    handiwork mcp log time          the log of one of them
    """
    if context.invoked_subcommand is not None:
        return

    def run() -> Exit:
        import asyncio

        from handiwork.paths import data_dir
        from handiwork.server.mcp_server import serve_http, serve_stdio
        from handiwork.settings import check_environment

        check_environment()
        if http is not None:
            serve_http(data_dir(), http, typer.echo)
        else:
            asyncio.run(serve_stdio(data_dir()))
        return Exit.FINISHED

    guarded(run)


@command(app, "mcp:show_status")
def status(session: Session = None) -> None:
    """Show the state of a session's MCP servers, and the end of the stderr of one that failed."""


@command(app, "mcp:show_log")
def log(
    server: Annotated[str, typer.Argument(metavar="SERVER", help="The server's name in your settings.")],
    session: Session = None,
) -> None:
    """Show the end of an MCP server's log in a session: its stderr and the messages that it logs."""


@command(app, "mcp:check_servers")
def check(
    workspace: Workspace = Path(),
    sandbox: SandboxKind = None,
    image: Image = None,
    mount_ro: MountRo = None,
    secret: SecretNames = None,
    allow_net: AllowNet = None,
) -> None:
    """Start the MCP servers of your settings in a sandbox, as a session would, and list their tools."""


async def show_status(session: str | None) -> Exit:
    """Print the newest state of each server in the session's log."""
    from handiwork.cli.commands.sessions import find
    from handiwork.cli.errors import say
    from handiwork.events.record import MCPServerEvent
    from handiwork.log.store import Store
    from handiwork.paths import data_dir

    newest: dict[str, MCPServerEvent] = {}
    async with Store.open(data_dir()) as store:
        log = await find(store, session)
        for event in await log.read():
            if isinstance(event, MCPServerEvent):
                newest[event.server] = event
    if not newest:
        say(f"session {log.id} has started no MCP server")
    for event in newest.values():
        _print(event)
    return Exit.FINISHED


async def show_log(server: str, session: str | None) -> Exit:
    """Print the end of a server's log."""
    from handiwork.cli.commands.sessions import find
    from handiwork.cli.errors import say
    from handiwork.cli.terminal.sanitize import plain
    from handiwork.log.store import Store
    from handiwork.paths import data_dir
    from handiwork.session.mcp.server_log import logged_servers, read_log
    from handiwork.session.storage.layout import session_dir

    async with Store.open(data_dir()) as store:
        folder = session_dir(data_dir(), (await find(store, session)).id)
    names = logged_servers(folder)
    if server not in names:
        say(f"session {folder.name} has no log of an MCP server {server}; it has logs of: {', '.join(names) or 'none'}")
        return Exit.USAGE
    typer.echo(plain(read_log(folder, server)), nl=False)
    return Exit.FINISHED


async def check_servers(workspace: Path, flags: dict[str, object]) -> Exit:
    """Start the servers in a session of their own, which is deleted afterwards; fail if one does not start."""
    from handiwork.cli.errors import say
    from handiwork.llm.scripted.model import ScriptedLLM
    from handiwork.log.store import Store
    from handiwork.paths import data_dir
    from handiwork.session.config import SessionConfig
    from handiwork.session.open import create
    from handiwork.session.storage.gc import delete_session
    from handiwork.settings import load, settings_file

    config = SessionConfig.of(load(flags), workspace)
    if not config.mcp:
        say(f"{settings_file()} has no MCP server: add a table like [mcp.time] with its command, or url")
        return Exit.USAGE
    data = data_dir()
    async with Store.open(data) as store:
        session = await create(store, data, config, lambda _: None, "handiwork mcp check", llm=ScriptedLLM([]))
        try:
            async with session.hold_lease():
                events = await session.start_mcp()
        finally:
            await delete_session(store, data, session.id)
    for event in events:
        _print(event)
    return Exit.FINISHED if all(event.state == "ready" for event in events) else Exit.FAILED


def _print(event: MCPServerEvent) -> None:
    from rich.text import Text

    from handiwork.cli.terminal.sanitize import plain
    from handiwork.cli.terminal.view import terminal_console

    console = terminal_console()
    tools = f", {len(event.tools)} tools" if event.tools else ""
    style = "green" if event.state == "ready" else "red"
    console.print(Text.assemble((plain(event.server), "bold"), "  ", (event.state, style), tools), soft_wrap=True)
    for line in filter(None, [*event.content.splitlines(), *event.errors.splitlines()]):
        console.print(Text(f"  {plain(line)}"), soft_wrap=True)
    for tool in event.tools:
        summary = plain(f": {tool.summary}" if tool.summary else "")
        console.print(Text(f"  {plain(tool.name)}{summary}"), soft_wrap=True)
