"""``handiwork run --web``: a server beside the run, and its page of the session in the user's browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from handiwork.cli.errors import say
from handiwork.log.errors import LogError
from handiwork.sandbox.bundle import host_command

_SERVE = "from handiwork.cli.main import main; main()"
_SECONDS = 10.0
"""For which a server that was told to end is waited for."""


class Page:
    """A server of its own process; its pages are there until that ends."""

    def __init__(self, server: subprocess.Popen[str], link: str, private: Path) -> None:
        self._server, self._link, self._private = server, urlsplit(link), private

    def show(self, session: str) -> None:
        """Print the link to a session's page, and open it if there is a display.

        The browser gets the link, which has the token, in a file of the ``private`` folder: other users can read the
        command lines of all programs.
        """
        link = self._link._replace(path=f"/s/{session}").geturl()
        say(f"the session in the browser: {link}")
        opener = shutil.which("xdg-open")
        if opener is not None and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            # Imported late: few runs have a page.
            from handiwork.server.access import forwarding_page

            quiet = subprocess.DEVNULL
            file = self._private / f"{session}.html"
            with open(file, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as page:
                page.write(forwarding_page(link))
            subprocess.Popen([opener, file.as_uri()], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)

    def wait(self) -> None:
        """Keep the page until Ctrl-C: one may go on with the session there."""
        say("the page stays until you press Ctrl-C")
        try:
            self._server.wait()
        except KeyboardInterrupt:
            return


@contextmanager
def served() -> Generator[Page]:
    """Serve the user's sessions meanwhile. Raises LogError when the server does not begin."""
    # A session of its own: the first Ctrl-C is for the run. It ends with this process, however that ends.
    command = [*host_command("setpriv"), "--pdeathsig", "TERM", sys.executable, "-c", _SERVE, "serve", "--port", "0"]
    server = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert server.stdout is not None
        link = server.stdout.readline().strip()
        if not link:
            raise LogError("the server of the page could not begin; what is above says why")
        with TemporaryDirectory(prefix="handiwork-page-") as private:
            yield Page(server, link, Path(private))
    finally:
        server.terminate()
        try:
            server.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
