"""``handiwork serve``: its options, and its messages at a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

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
    At a terminal it also opens the link, if there is a display.

    \b
    handiwork serve
    handiwork serve --host 0.0.0.0 --port 80
    """

    from handiwork.paths import data_dir
    from handiwork.server.serve import serve
    from handiwork.settings import check_environment
    from handiwork.workspace.files.temp_dir import temporary_dir

    check_environment()
    if data is not None:
        os.environ["HANDIWORK_DATA"] = str(data.expanduser().absolute())
    with temporary_dir() as private:
        serve(data_dir(), host, port, not no_token, lambda link: announce(link, private, *_advice(link)))


def _advice(link: str) -> Iterator[str]:
    if urlsplit(link).query:
        yield "anyone with the link can use your sessions: keep it to yourself"
    yield "Ctrl-C ends the server; its sessions resume when it starts again"


def announce(link: str, private: Path, *advice: str) -> None:
    """Print the link; at a terminal, also explain how to use it, and open it if there is a display."""
    typer.echo(link)
    if not sys.stdout.isatty():
        return
    from handiwork.cli.dialog.web_page import open_page

    address = urlsplit(link)
    if open_page(link, private / "page.html"):
        lines = ["the page opens in your browser; the link above opens it again"]
    elif os.environ.get("SSH_CONNECTION"):
        tunnel = f"ssh -L {address.port}:127.0.0.1:{address.port}"
        lines = [f"on your own machine, run `{tunnel} THIS_MACHINE`, then open the link above in your browser there"]
    else:
        lines = ["open the link above in your browser"]
    for line in [*lines, *advice]:
        typer.echo(f"handiwork: {line}", err=True)
