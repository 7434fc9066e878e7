"""The check of a task: a command that shows whether the work is right."""

from __future__ import annotations

import re
from itertools import chain

from handiwork.agents.state import State
from handiwork.events.action import MessageAction
from handiwork.events.overview import WorkspaceOverviewObservation

_NAMED = re.compile(
    r"`((?:make (?:test|check)|pytest|tox|nox|python3? -m (?:pytest|unittest)|(?:npm|pnpm|yarn|bun|deno)(?: run)? test"
    r"|node --test|cargo test|go test|ctest|mvn test|gradle test|rake (?:test|spec)|dotnet test)\b[^`\n]*"
    r"|(?:python3?|node|ruby|php|sh|bash) [\w./-]*test[\w./-]*)`"
)
"""A test command in backticks."""

_FILE = r"^(?:.*/)?{}:\n```\n(.*?)^```$"


def check_of(state: State) -> str:
    """Return the test command that the user names last, else the project's; "" without one."""
    messages = [a.content for a, _ in state.history if isinstance(a, MessageAction) and a.source == "user"]
    if named := list(chain.from_iterable(_NAMED.findall(message) for message in messages)):
        return named[-1]
    overview = next((o for _, o in state.history if isinstance(o, WorkspaceOverviewObservation)), None)
    return "" if overview is None else _project_check(overview)


def _project_check(overview: WorkspaceOverviewObservation) -> str:
    """Return the test command of a project, read from its overview."""
    paths = set(overview.paths)
    if "Makefile" in paths and re.search(r"^test:", _text(overview, "Makefile"), re.MULTILINE):
        return "make test"
    if "package.json" in paths and '"test"' in _text(overview, "package.json"):
        return "npm test"
    if "Cargo.toml" in paths:
        return "cargo test"
    if "go.mod" in paths:
        return "go test ./..."
    tests = [path for path in paths if re.fullmatch(r"(?:.*/)?(?:test_[^/]*|[^/]*_test)\.py", path)]
    if not tests:
        return ""
    if re.search(r"^import pytest|^def test_", overview.text, re.MULTILINE):
        return "python3 -m pytest -q"
    folders = {path.rpartition("/")[0] for path in tests}
    if len(folders) == 1 and (folder := folders.pop()) and f"{folder}/__init__.py" not in paths:
        return f"python3 -m unittest discover -q -s {folder} -t ."
    return "python3 -m unittest -q"


def _text(overview: WorkspaceOverviewObservation, path: str) -> str:
    match = re.search(_FILE.format(re.escape(path)), overview.text, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""
