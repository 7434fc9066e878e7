"""``handiwork run --web``: a server beside the run, and the session's page in the user's browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from handiwork.cli.errors import say
from handiwork.log.errors import LogError
from handiwork.sandbox.bundle import host_command
from handiwork.workspace.files.temp_dir import temporary_dir

_SERVE = "from handiwork.cli.main import main; main()"
_SECONDS = 10.0
"""Seconds to wait for the server to end before it is killed."""


class Page:
    """The session's page, on a server in a separate process; the page stays until that process ends."""

    def __init__(self, server: subprocess.Popen[str], link: str, private: Path) -> None:
        self._server, self._link, self._private = server, urlsplit(link), private

    def show(self, session: str) -> None:
        """Print the link to a session's page, and open it if there is a display."""
        link = self._link._replace(path=f"/s/{session}").geturl()
        say(f"open the session in a browser: {link}")
        open_page(link, self._private / f"{session}.html")

    def wait(self) -> None:
        """Keep the page until Ctrl-C, so that the user can continue the session there."""
        try:
            say("the page stays until you press Ctrl-C")  # inside: the user may press it as soon as this is printed
            self._server.wait()
        except KeyboardInterrupt:
            return


def open_page(link: str, file: Path) -> bool:
    """Open the link in the browser of the user's display; return False if there is none.

    The browser gets the link, which contains the token, in the private ``file``, because other users can read the
    command lines of all programs.
    """
    opener = shutil.which("xdg-open")
    if opener is None or not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    # Imported late: few runs have a page.
    from handiwork.server.access import forwarding_page

    null = subprocess.DEVNULL
    with open(file, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as page:
        page.write(forwarding_page(link))
    subprocess.Popen([opener, file.as_uri()], stdin=null, stdout=null, stderr=null, start_new_session=True)
    return True


@contextmanager
def served() -> Generator[Page]:
    """Serve the user's sessions inside the context. Raises LogError if the server does not start."""
    # The server gets its own process session, since the first Ctrl-C is for the run; it ends when this process ends.
    command = [*host_command("setpriv"), "--pdeathsig", "TERM", sys.executable, "-c", _SERVE, "serve", "--port", "0"]
    server = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert server.stdout is not None
        link = server.stdout.readline().strip()
        if not link:
            raise LogError("the server of the page could not start; see the message above")
        with temporary_dir() as private:
            yield Page(server, link, private)
    finally:
        server.terminate()
        try:
            server.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
