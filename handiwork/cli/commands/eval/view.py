"""``handiwork eval view``: serves the page of a run."""

from __future__ import annotations

from pathlib import Path

from handiwork.cli.commands.serve import announce
from handiwork.evals.viewing.run_follower import RunFollower
from handiwork.server.serve import serve
from handiwork.workspace.files.temp_dir import temporary_dir

ADVICE = "Ctrl-C ends the server; the run goes on without it"


def view(folder: Path, port: int) -> None:
    """Serve the rollouts of the run in a folder on this machine until a signal arrives.

    Raises ResultsError, SettingsError, LogError.
    """
    run = RunFollower(folder)
    with temporary_dir() as private:
        serve(private / "data", "127.0.0.1", port, True, lambda link: announce(link, private, ADVICE), run)
