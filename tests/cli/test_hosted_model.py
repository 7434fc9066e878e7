"""The main job with a model behind a URL: on a clone of this project, in the sandbox, until the change is applied."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from handiwork.llm.scripted.script import Reply
from tests.cli.program import Program, bash, edit, finish
from tests.llm.standin import Refusal, StandIn, Stream, serving, text

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[2]
KEY = "a-key-that-stays-with-the-platform"
TITLE, NEW_TITLE = "# Handiwork\n", "# Handiwork, and more\n"
WORK = (
    bash("env; git log -1 --format=%s; cat README.md | head -1", said="I look at it first."),
    edit("README.md", TITLE, NEW_TITLE),
    bash("echo one > notes.txt"),
    finish("The title says more."),
)


class Hosted:
    """A user's program with the model on a server."""

    def __init__(self, program: Program, server: StandIn) -> None:
        self.program, self.server = program, server
        self.workspace = program.workspace

    def plan(self, *replies: dict[str, Any]) -> None:
        self.server.replies = [Reply.model_validate(reply) for reply in replies]

    def arguments(self, *flags: str) -> tuple[str, ...]:
        model = ("--model", "some-model", "--base-url", self.server.base_url)
        return ("run", "say more in the title", "--workspace", str(self.workspace), *model, *flags)

    async def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(self.program, *arguments, HANDIWORK_API_KEY=KEY)

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=self.workspace, check=True, capture_output=True, text=True
        ).stdout


@pytest.fixture
async def hosted(program: Program) -> AsyncGenerator[Hosted]:
    async with serving(StandIn()) as server:
        yield Hosted(program, server)


@pytest.fixture
def clone(hosted: Hosted, tmp_path: Path) -> Path:
    """A clone of this project, which becomes the workspace."""
    if not (CHECKOUT / ".git").exists():
        pytest.skip("these tests do not run from a git checkout")
    hosted.workspace = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--local", CHECKOUT, hosted.workspace], check=True)
    return hosted.workspace


async def test_a_change_of_this_project_from_the_task_to_apply(hosted: Hosted, clone: Path) -> None:
    before = (clone / "README.md").read_text()
    hosted.plan(*WORK)
    run = await hosted(*hosted.arguments())
    assert run.returncode == 0, run.stdout + run.stderr
    assert "· bubblewrap ·" in run.stdout
    assert "The title says more." in run.stdout
    assert hosted.git("status", "--porcelain") == ""

    diff = (await hosted("diff")).stdout
    assert "-# Handiwork\n+# Handiwork, and more\n" in diff
    assert "+++ b/notes.txt" in diff
    assert diff.count("\ndiff --git") == 1

    applied = await hosted("apply")
    assert applied.returncode == 0, applied.stderr
    assert hosted.git("status", "--porcelain") == " M README.md\n?? notes.txt\n"
    assert (clone / "README.md").read_text() == before.replace(TITLE, NEW_TITLE, 1)
    assert (clone / "notes.txt").read_text() == "one\n"


async def test_the_model_is_sent_tools_and_outputs_and_the_sandbox_no_key(hosted: Hosted, clone: Path) -> None:
    hosted.plan(*WORK)
    await hosted(*hosted.arguments())
    first, second, *_ = hosted.server.requests
    assert (first["model"], first["stream"]) == ("some-model", True)
    assert {"bash", "edit", "finish"} <= {tool["function"]["name"] for tool in first["tools"]}
    assert set(hosted.server.keys) == {f"Bearer {KEY}"}
    said, answered = second["messages"][-2:]
    assert said["content"] == "I look at it first."
    assert answered["tool_call_id"] == said["tool_calls"][0]["id"]
    assert TITLE in answered["content"] + "\n"
    assert hosted.git("log", "-1", "--format=%s") in answered["content"] + "\n"
    assert KEY not in json.dumps(hosted.server.requests)


async def test_a_conflict_is_listed_and_nothing_is_written(hosted: Hosted, clone: Path) -> None:
    hosted.plan(*WORK)
    await hosted(*hosted.arguments())
    readme = clone / "README.md"
    mine = readme.read_text().replace(TITLE, "# My own title\n", 1)
    readme.write_text(mine)
    applied = await hosted("apply")
    assert applied.returncode == 1
    assert "README.md: the same lines were changed by the session and here" in applied.stderr
    assert readme.read_text() == mine
    assert hosted.git("status", "--porcelain") == " M README.md\n"


async def test_a_reply_is_seen_while_it_comes_and_an_interrupt_hangs_up(hosted: Hosted) -> None:
    hosted.plan(finish())
    hosted.server.planned.append(Stream([*text("I begin to think\n", finish=None)], end="hang"))
    with hosted.program.at_terminal(*hosted.arguments()) as terminal:
        await asyncio.to_thread(terminal.until, "I begin to think")
        assert not hosted.server.disconnected.is_set()
        terminal.press_ctrl_c()
        async with asyncio.timeout(20):
            await hosted.server.disconnected.wait()
        await asyncio.to_thread(terminal.until, "what next?")
        terminal.write("go on\n")
        assert await asyncio.to_thread(terminal.exit_code) == 0


async def test_the_exit_code_is_3_at_a_limit(hosted: Hosted) -> None:
    hosted.plan(*WORK)
    run = await hosted(*hosted.arguments("--max-iterations", "1"))
    assert run.returncode == 3, run.stdout + run.stderr
    assert len(hosted.server.requests) == 1


async def test_the_exit_code_is_4_where_the_key_is_refused(hosted: Hosted) -> None:
    hosted.server.planned.append(Refusal(401, {"error": {"message": "no such key"}}))
    run = await hosted(*hosted.arguments())
    assert run.returncode == 4, run.stdout + run.stderr
    assert "no such key" in run.stdout
    assert "check HANDIWORK_API_KEY" in run.stdout
    assert KEY not in run.stdout + run.stderr
    assert len(hosted.server.requests) == 1
