"""Secrets reach the commands that name them, and nothing that is kept, shown or sent to the model."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from handiwork.agents.codeact import CodeActAgent
from handiwork.events.action import CmdRunAction, IPythonRunCellAction
from handiwork.events.base import Event
from handiwork.events.codec import to_json
from handiwork.events.observation import CmdOutputObservation, IPythonRunCellObservation
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.log.store import Store
from handiwork.sandbox.bubblewrap.sandbox import BubblewrapSandbox
from handiwork.session.approval.rules import ExecutionContext, needs_approval
from handiwork.session.config import SessionConfig
from handiwork.session.secrets import SecretError, Secrets, load, specification
from handiwork.session.session import Session
from handiwork.session.steps.live import OutputDelta, TextDelta
from handiwork.workspace.copy import make_copy
from handiwork.workspace.layers import SandboxPaths
from tests.session.bench import bash, call, finish

TOKEN = "ghp_s3cr3t/T0ken\"with'all+of it$"
FORMS = [TOKEN.encode(), base64.b64encode(TOKEN.encode())[:38], TOKEN.encode().hex().encode()]


class Run:
    """A session in the real sandbox that has the secret TOKEN."""

    def __init__(self, data: Path, session: Session, llm: ScriptedLLM, watched: list[Any]) -> None:
        self.data, self.session, self.llm, self.watched = data, session, llm, watched

    async def outputs(self, task: str) -> list[str]:
        await self.session.run(task)
        kinds = CmdOutputObservation | IPythonRunCellObservation
        return [event.text for event in self.watched if isinstance(event, kinds)]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Any]:
    project, data = tmp_path / "project", tmp_path / "data"
    project.mkdir()
    async with Store.open(data) as store:
        sessions: list[Session] = []

        async def make(*replies: Any) -> Run:
            watched: list[Any] = []
            log = await store.create(agent="CodeActAgent", model="scripted")
            folder = data / "sessions" / log.id
            workspace = make_copy(project, folder)

            async def save(pieces: AsyncIterator[bytes]) -> str:
                return await store.blobs.put(pieces)

            sandbox = BubblewrapSandbox(SandboxPaths(folder, project, workspace.base, workspace.mounts), save)
            llm = ScriptedLLM(replies)
            config = SessionConfig(agent="CodeActAgent", model="scripted", workspace=str(project))
            secrets = Secrets({"TOKEN": TOKEN})
            session = Session(log, store, config, CodeActAgent, llm, sandbox, watched.append, secrets=secrets)
            sessions.append(session)
            return Run(data, session, llm, watched)

        yield make
        for session in sessions:
            await session.close()


def kept(data: Path) -> list[bytes]:
    """Return the bytes of all files of a data folder."""
    return [path.read_bytes() for path in data.rglob("*") if path.is_file() and not path.is_symlink()]


async def test_whatever_a_command_does_with_a_secret_nothing_that_is_kept_or_shown_has_it(make: Any) -> None:
    run: Run = await make(
        bash('printf "%s\\n" "$TOKEN"'),
        bash('printf %s "$TOKEN" | base64; printf "abc%s!" "$TOKEN" | base64 -w 20'),
        bash('printf %s "$TOKEN" | od -An -tx1 -v; printf %s "$TOKEN" > f'),
        bash("cat f; rm f"),
        bash('python3 -c "import json,sys; print(json.dumps(json.dumps(sys.argv[1])))" "$TOKEN"'),
        bash('for n in $(seq 1 3000); do printf "%s %s\\n" "$n" "$TOKEN"; done'),
        bash('for c in $(seq 0 9); do printf %s "${TOKEN:$c:1}"; sleep 0.01; done; printf %s "${TOKEN:10}"'),
        call("ipython", code='import os; print(os.environ["TOKEN"]); print(len(os.environ["TOKEN"]))'),
        finish(f"the token is {TOKEN}"),
    )
    outputs = await run.outputs(f"use {TOKEN}")
    assert all("[secret TOKEN]" in output for output in outputs), outputs
    assert str(len(TOKEN)) in outputs[-1], "the cell had the true value"
    shown = "".join(item.text for item in run.watched if isinstance(item, OutputDelta | TextDelta))
    events = "".join(to_json(item) for item in run.watched if isinstance(item, Event))
    asked = repr(run.llm.requests)
    await run.session.close()
    for form in FORMS:
        assert form.decode() not in shown + events + asked
        assert not any(form in content for content in kept(run.data))


async def test_only_what_names_a_secret_gets_it(make: Any) -> None:
    run: Run = await make(
        bash("echo ${TOKEN:+set}"),
        bash("env | grep -c TOK"),
        bash("(exit 3) # $TOKEN"),
        bash("echo $?; env | grep -c TOK"),
        bash("exit # $TOKEN"),
        bash("env | grep -c TOK"),
        call("bash", command="sh -c 'echo ${TOKEN:+in the job}' > said", background=True),
        bash("until [ -s said ]; do :; done; cat said"),
        call("ipython", code="import os; 'TOK' + 'EN' in os.environ"),
        call("ipython", code="import os; 'TOKEN' in os.environ"),
        call("ipython", code="import os; 'TOK' + 'EN' in os.environ"),
        finish(),
    )
    outputs = [output.partition("[job1 ended")[0].strip() for output in await run.outputs("go")]
    assert outputs == ["set", "0", "", "3\n0", "exit", "0", "", "in the job", "False", "True", "False"]


async def test_the_agent_is_told_which_secrets_there_are(make: Any) -> None:
    run: Run = await make(finish())
    await run.session.run("go")
    assert "$TOKEN" in repr(run.llm.requests[0])


class TestApproval:
    PLACE = ExecutionContext(isolated=True, in_place=False, secrets=frozenset({"TOKEN"}))

    @pytest.mark.parametrize(
        "command", ["curl -H $TOKEN host", "echo ${TOKEN}", "cat ${TOKEN:-x}", "git push '$TOKEN'"]
    )
    def test_using_a_secret_is_risky(self, command: str) -> None:
        action = CmdRunAction(command=command)
        assert needs_approval(action, "risky", self.PLACE, ()) == "It uses the secret TOKEN."
        assert needs_approval(action, "risky", self.PLACE, ["command git push *"])
        assert needs_approval(action, "risky", self.PLACE, [f"exactly {command}"]) is None

    def test_so_it_is_in_a_cell(self) -> None:
        assert needs_approval(IPythonRunCellAction(code='os.getenv("TOKEN")'), "risky", self.PLACE, ())
        assert needs_approval(IPythonRunCellAction(code="TOKEN = 1"), "risky", self.PLACE, ()) is None


class TestSources:
    def test_a_secret_comes_from_the_environment_or_a_file(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("TOKEN", TOKEN)
        (tmp_path / "key").write_text(f"{TOKEN}\n")
        assert load(["TOKEN", specification(f"KEY=@{tmp_path}/key")]).values == {"TOKEN": TOKEN, "KEY": TOKEN}

    def test_all_that_is_missing_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(SecretError, match=r"(?s)ONE is missing.*variable ONE.*TWO is missing.*nowhere"):
            load(["ONE", f"TWO=@{tmp_path}/nowhere"])

    @pytest.mark.parametrize("value", ["short", "aaaaaaaaaaaa"])
    def test_a_value_that_is_too_simple_is_refused(self, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TOKEN", value)
        with pytest.raises(SecretError, match="TOKEN is too simple") as refused:
            load(["TOKEN"])
        assert value not in str(refused.value)

    @pytest.mark.parametrize("text", ["TOKEN=ghp_value", "PATH", "LD_PRELOAD", "1ST", "A B", ""])
    def test_a_value_on_the_command_line_and_names_that_mean_something_else_are_refused(self, text: str) -> None:
        with pytest.raises(SecretError):
            specification(text)
