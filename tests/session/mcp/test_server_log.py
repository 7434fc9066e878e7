"""The log of an MCP server, without the server."""

from __future__ import annotations

from pathlib import Path

from handiwork.log.redaction.redactor import Redactor
from handiwork.session.mcp.server_log import LIMIT, ServerLog, logged_servers, read_log


def test_a_secret_in_two_pieces_is_masked(tmp_path: Path) -> None:
    redactor = Redactor()
    redactor.learn({"TOKEN": "an0ther-secret-value"})
    log = ServerLog(tmp_path, "a", redactor)
    log.begin()
    for piece in ("the token is an0ther-sec", "ret-value\n", "no end"):
        log.write(piece)
    log.end()
    assert read_log(tmp_path, "a").split("\n")[1:] == ["the token is [secret TOKEN]", "no end"]


def test_a_log_keeps_its_end(tmp_path: Path) -> None:
    log = ServerLog(tmp_path, "a", Redactor())
    for number in range(100):
        log.write(f"{number}" + "x" * (LIMIT // 10) + "\n")
    text = read_log(tmp_path, "a")
    assert LIMIT / 2 < len(text) <= 2 * LIMIT
    assert text.splitlines()[-1].startswith("99x")
    assert logged_servers(tmp_path) == ["a"]
    assert read_log(tmp_path, "b") == ""
