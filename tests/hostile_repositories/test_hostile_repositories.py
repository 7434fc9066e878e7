"""No repository runs anything outside of the sandbox, gets anything out of it, or is loaded before it is trusted."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import pytest

import handiwork
from handiwork.context.characters import hidden_kinds
from handiwork.context.discovery import ContextFinding, everything
from handiwork.context.trust import Trust
from handiwork.events.base import Event
from handiwork.events.codec import to_json
from handiwork.events.record import ContextLoaded
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.log.store import Store
from tests.cli.program import Program, bash, finish
from tests.hostile_repositories.cases import CASES, LURE, SECRET, Case, Trap

PAGE = Path(__file__).parents[2] / "docs/security.md"


@dataclass
class Attacker:
    """Listens on this machine for what a repository sends."""

    server: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    connections: int = 0

    def listen(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def received(self) -> int:
        """Return the number of connections, also of those that had not been accepted: one of its own comes last."""
        with socket.create_connection(self.server.getsockname()) as last:
            last.recv(1)
        self.connections -= 1
        return self.connections


@pytest.fixture
def attacker() -> Iterator[Attacker]:
    attacker = Attacker()
    thread = Thread(target=attacker.listen, daemon=True)
    thread.start()
    yield attacker
    attacker.server.shutdown(socket.SHUT_RDWR)
    attacker.server.close()
    thread.join()


def trap_in(folder: Path, attacker: Attacker) -> Trap:
    (folder / "project").mkdir(exist_ok=True)
    (folder / "secret").mkdir()
    (folder / "secret/key").write_text(SECRET)
    port: int = attacker.server.getsockname()[1]
    return Trap(folder / "project", folder / "witness", folder / "secret/key", port)


@pytest.fixture
def trap(tmp_path: Path, attacker: Attacker, new_user: None, monkeypatch: pytest.MonkeyPatch) -> Trap:
    """A project, and a user whose environment, home and key have the secret."""
    monkeypatch.setenv("HOST_SECRET", SECRET)
    return trap_in(tmp_path, attacker)


def findings(trap: Trap) -> list[ContextFinding]:
    return everything(trap.root, trap.root.parent / "config/handiwork", Trust(trap.root.parent / "data"))


def accept_all(trap: Trap) -> None:
    waiting = [finding.convention for finding in findings(trap) if finding.waits_for_user]
    Trust(trap.root.parent / "data").answer(trap.root, waiting, accept=True)


def run(trap: Trap, case: Case) -> tuple[list[Event], list[str]]:
    """Run a session in a real sandbox whose agent obeys the repository; return its events and prompts."""
    data = trap.root.parent / "data"
    commands = [command.replace("PAYLOAD", trap.payload) for command in case.commands]
    llm = ScriptedLLM([*(bash(command) for command in ("ls -la", *commands)), finish()])
    done = handiwork.run("say hello", workspace=trap.root, model=llm, data=data)
    assert done.outcome == "finished", done.state.last_error

    async def events() -> list[Event]:
        async with Store.open(data) as store:
            return await (await store.log(done.session)).read()

    prompts = ["\n".join(part.text or "" for m in request for part in m.content) for request in llm.requests]
    return asyncio.run(events()), prompts


def assert_harmless(trap: Trap, attacker: Attacker, texts: Sequence[str]) -> None:
    assert not trap.witness.exists(), "a command ran on this machine"
    assert attacker.received() == 0, "something was sent"
    for text in texts:
        # The attacker's own commands name the place of the secret, never its content.
        assert SECRET not in text


def test_the_page_lists_them() -> None:
    assert len({case.name for case in CASES}) == len(CASES) == 34
    page = PAGE.read_text()
    assert [case.name for number, case in enumerate(CASES, 1) if f"\n{number}. {case.name}: " not in page] == []


def test_on_this_machine_the_payload_would_be_noticed(trap: Trap, attacker: Attacker) -> None:
    printed = subprocess.run(["bash", "-c", trap.payload], capture_output=True, text=True, check=False).stdout
    assert SECRET in printed
    with pytest.raises(AssertionError, match="a command ran on this machine"):
        assert_harmless(trap, attacker, [])
    trap.witness.unlink()
    with pytest.raises(AssertionError, match="something was sent"):
        assert_harmless(trap, attacker, [])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_of_it_loads_before_it_is_accepted(case: Case, trap: Trap, attacker: Attacker) -> None:
    case.plant(trap)
    found = findings(trap)
    assert all(finding.state in ("not accepted", "left out") for finding in found)
    assert bool(found) != case.nothing
    assert any(case.refused in finding.why for finding in found) or case.nothing
    accept_all(trap)
    after = findings(trap)
    loads = [finding for finding in after if finding.state in ("loads", "nested", "on request")]
    refused = [finding.why for finding in after if finding.state == "left out" and not finding.convention.redundant]
    assert bool(case.refused) == any(case.refused in why for why in refused if case.refused)
    assert bool(loads) == (not case.refused and not case.nothing)
    for finding in loads:
        assert hidden_kinds(finding.convention.shown) == hidden_kinds(finding.convention.text) == []
        assert SECRET not in finding.convention.shown
    assert_harmless(trap, attacker, [])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_of_it_runs_outside_or_gets_out(case: Case, trap: Trap, attacker: Attacker) -> None:
    case.plant(trap)
    events, prompts = run(trap, case)
    assert not [event for event in events if isinstance(event, ContextLoaded)]
    assert LURE not in prompts[0]
    assert_harmless(trap, attacker, [*map(to_json, events), *prompts])
    accept_all(trap)
    events, prompts = run(trap, case)
    loaded = [event for event in events if isinstance(event, ContextLoaded)]
    assert all(event.path in "".join(prompts) or event.category == "devcontainer" for event in loaded)
    assert_harmless(trap, attacker, [*map(to_json, events), *prompts])


@pytest.fixture
def all_in_one(program: Program, attacker: Attacker) -> Trap:
    """The project of a command line's user, with every attack that can share it, a key in the user's home."""
    trap = trap_in(program.folder, attacker)
    (program.folder / ".ssh").mkdir()
    (program.folder / ".ssh/id_rsa").write_text(SECRET)
    program.environment["HOST_SECRET"] = SECRET
    for case in CASES:
        if not case.alone:
            case.plant(trap)
    return trap


@pytest.mark.slow
def test_all_of_them_together_from_the_command_line(program: Program, all_in_one: Trap, attacker: Attacker) -> None:
    commands = [command for case in CASES if not case.alone for command in case.commands]
    model = program.script(*(bash(command.replace("PAYLOAD", all_in_one.payload)) for command in commands), finish())
    task = ("run", "say hello", "--model", model)
    listed = program("context")
    before = program(*task)
    assert (listed.returncode, before.returncode) == (0, 0), before.stderr
    assert "not loaded until you accept them: AGENTS.md, CLAUDE.md" in before.stdout, before.stdout
    assert not [event for event in program.events() if event["type"] == "ContextLoaded"]
    accepted = program("context", "--accept", "--yes")
    after = program(*task)
    assert (accepted.returncode, after.returncode) == (0, 0), after.stderr
    loaded = [event["path"] for event in program.events() if event["type"] == "ContextLoaded"]
    assert loaded[:3] == ["AGENTS.md", "CLAUDE.md", ".claude/skills/helper/SKILL.md"]
    outputs = [done.stdout + done.stderr for done in (listed, before, accepted, after)]
    assert_harmless(all_in_one, attacker, [*outputs, str(program.events())])


@pytest.mark.slow
def test_the_texts_are_shown_escaped_before_the_user_says_yes(program: Program, attacker: Attacker) -> None:
    trap = trap_in(program.folder, attacker)
    next(case for case in CASES if case.name == "text that runs backwards").plant(trap)
    with program.at_terminal("context", "--accept") as terminal:
        shown = terminal.until("accept AGENTS.md?")
        assert "WARNING: it hides 4 bidirectional controls" in shown
        assert "\\u202e" in shown
        assert "\u202e" not in shown
        terminal.write("n\n")
        assert terminal.exit_code() == 0
    assert "loads" not in program("context", "--json").stdout


@pytest.mark.slow
def test_a_notice_names_a_file_without_its_tricks(program: Program, attacker: Attacker) -> None:
    trap = trap_in(program.folder, attacker)
    next(case for case in CASES if case.name == "skills with tricks in their names").plant(trap)
    done = program.run(finish())
    (notice,) = [event["content"] for event in program.events() if event["type"] == "ContextWithheld"]
    assert notice.isprintable()
    assert "\x1b" not in done.stdout + done.stderr
