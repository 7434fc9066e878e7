"""An apply loses nothing: a file that an earlier one brought, and one that the session moved to where it stays."""

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


async def test_a_file_that_the_session_moved_to_a_directory_that_an_apply_leaves_out_is_kept(bench: Workbench) -> None:
    target = bench.project / "target"
    target.mkdir()
    with (target / "large").open("wb") as file:
        file.truncate(60_000_000)  # such a directory is mounted instead of copied
    log = await bench.ran("mv README target/; mkdir .venv; mv src .venv/; ln -s .venv/src src; mv .venv/src/main.py .")
    _, applied = await apply_session(bench.data, log)
    assert applied.warnings == (
        "README was kept: the session moved it to target/README, which stays in the session.",
        "src/other.py was kept: the session moved it to .venv/src/other.py, which stays in the session.",
        "src was left out: kept files are there.",
    )
    assert (applied.written, applied.deleted) == (("main.py",), ("src/main.py",))
