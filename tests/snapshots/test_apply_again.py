"""An apply after an earlier one of the same session."""

from __future__ import annotations

from handiwork.session.apply import apply_session
from tests.snapshots.workbench import Workbench


async def test_an_applied_file_that_the_session_ignores_since_stays_in_the_directory(bench: Workbench) -> None:
    log = await bench.ran("echo 1,2 > report.csv")
    await apply_session(bench.data, log)
    await bench.resumed(log, "ignore the report", "echo report.csv > .gitignore")
    _, applied = await apply_session(bench.data, log)
    assert (applied.written, applied.deleted) == ((".gitignore",), ())
    assert (bench.project / "report.csv").read_text() == "1,2\n"
