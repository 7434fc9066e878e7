"""The options of ``handiwork serve``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from handiwork.cli.command import command


def add_to(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app)(serve)


def serve(
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 picks a free one.")] = 8642,
    data: Annotated[
        Path | None, typer.Option("--data", help="The data folder, instead of HANDIWORK_DATA.", show_default=False)
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let everybody on this machine in; only for a loopback address.")
    ] = False,
) -> None:
    """Serve your sessions over HTTP and WebSocket, and print the link to open in a browser.

    Sessions keep running when you close the browser, and resume after a restart. The other commands work on them too.

    \b
    handiwork serve
    handiwork serve --host 0.0.0.0 --port 80
    """

    from handiwork.paths import data_dir
    from handiwork.server.serve import serve
    from handiwork.settings import check_environment

    check_environment()
    if data is not None:
        os.environ["HANDIWORK_DATA"] = str(data.expanduser().absolute())
    serve(data_dir(), host, port, not no_token, typer.echo)
