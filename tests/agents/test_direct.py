"""DirectAgent: one prompt with all files, one script, and the end; the golden file is to be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import handiwork
from handiwork.agents.direct import HISTORY, LIST, REMINDER, SECONDS, DirectAgent, DirectReply, messages, parse
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, AgentRejectAction, CmdRunAction, FileReadAction
from handiwork.events.base import Action, Event
from handiwork.events.observation import CmdOutputObservation, ErrorObservation
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities, Completion
from tests.agents.states import check_golden, file_read, ran, reply, shown, state_of, task

GIT = ran(HISTORY, "## main\n* 9c1f6f3 (HEAD -> main) Begin\n", 0)
START = (task("Rename add to plus."), *ran(LIST, "30 add.py\n900000 log.txt\n4 logo.png\n", 0), *GIT)
READ = file_read("add.py", "def add(a, b):\n    return a + b\n")
BINARY = (FileReadAction(path="logo.png"), ErrorObservation(content="logo.png is no text.", error_id="binary"))
SCRIPT = "sed -i 's/add/plus/' add.py && cat add.py"
REPLY = f"I rename it.\n```bash\n{SCRIPT}\n```\n"


def script_ran(output: str, **fields: Any) -> tuple[Event, ...]:
    action = CmdRunAction(command=f"bash -c {SCRIPT!r}", thought="I rename it.")
    return reply(REPLY), action, CmdOutputObservation(command="bash", content=output, **fields)


async def steps(state: State, *replies: str, window: int | None = None) -> list[Action]:
    """The actions of the agent's next step, with a model that gives these replies."""
    answered = [message for message in messages(state) if message.role == "assistant"]
    llm = ScriptedLLM([*("" for _ in answered), *replies], capabilities=Capabilities(window=window))
    step = await DirectAgent(llm).step(state)
    return [step] if isinstance(step, Action) else list(step)


def test_the_conversation_is_the_golden_one() -> None:
    done = script_ran("def plus(a, b):\n    return a + b\n", exit_code=0)
    finish = AgentFinishAction(outputs={"message": "I rename it."})
    state = state_of(*START, *READ, *BINARY, *done, finish, task("Now back, please."))
    check_golden("direct", shown(messages(state)))


async def test_it_lists_the_files_first_and_reads_those_that_fit() -> None:
    first = await steps(state_of(START[0]))
    assert [action.command for action in first if isinstance(action, CmdRunAction)] == [LIST, HISTORY]
    for window, expected in (
        (None, ["add.py", "logo.png"]),
        (16, ["logo.png"]),
        (1_000_000, ["add.py", "log.txt", "logo.png"]),
    ):
        then = await steps(state_of(*START), window=window)
        assert [action.path for action in then if isinstance(action, FileReadAction)] == expected


async def test_without_files_it_asks_at_once() -> None:
    (action,) = await steps(state_of(task("What is 2 + 2?"), *ran(LIST, "", 0), *ran(HISTORY, "", 0)), "4.")
    assert isinstance(action, AgentFinishAction)
    assert action.outputs == {"message": "4."}


async def test_it_runs_the_script_once_and_finishes_with_its_output() -> None:
    state = state_of(*START, *READ)
    (action,) = await steps(state, REPLY)
    assert isinstance(action, CmdRunAction)
    assert (action.thought, action.timeout) == ("I rename it.", SECONDS)
    (action,) = await steps(state_of(*START, *READ, *script_ran("def plus(a, b):\n", exit_code=0)))
    assert isinstance(action, AgentFinishAction)
    assert action.outputs == {"message": "I rename it.\n\ndef plus(a, b):"}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"exit_code": 2}, "no such file\n[exit code 2]"),
        ({"exit_code": 137, "status": "timeout"}, "no such file\n[stopped after 120 seconds]"),
    ],
)
async def test_a_script_that_fails_is_told_and_not_repeated(fields: dict[str, Any], told: str) -> None:
    (action,) = await steps(state_of(*START, *READ, *script_ran("no such file\n", **fields)))
    assert isinstance(action, AgentFinishAction)
    assert action.outputs == {"message": f"I rename it.\n\n{told}"}


async def test_half_a_script_does_not_run() -> None:
    class Cut(ScriptedLLM):
        async def complete(self, *arguments: Any, **options: Any) -> Completion:
            return replace(await super().complete(*arguments, **options), finish_reason="length")

    for content, kind in ((REPLY.removesuffix("```\n"), AgentRejectAction), (REPLY, CmdRunAction)):
        action = await DirectAgent(Cut([content])).step(state_of(*START, *READ))
        assert isinstance(action, kind)
        if isinstance(action, AgentRejectAction):
            assert action.outputs["message"].startswith("I rename it.\n\nThe script of the reply was not run")


async def test_a_refusal_is_one() -> None:
    (action,) = await steps(state_of(*START, *READ), "I can't rename it: there is no add.")
    assert isinstance(action, AgentRejectAction)
    assert action.outputs["reason"] == "I can't rename it: there is no add."


HEREDOC = "cat > README.md <<'END'\n# Use\n```\nmake\n```\nEND\necho $((1<<2)) >> README.md; cat <<< EOF"


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("No.", ("No.", "", False)),
        ("A.\n```bash\necho 1\n```\nB.", ("A.\nB.", "echo 1", False)),
        ("```sh\nmkdir a\n```\nand\n```bash\ncd a\n```", ("and", "mkdir a\ncd a", False)),
        ("```python\nprint(1)\n```", ("```python\nprint(1)\n```", "", False)),
        (f"```bash\n{HEREDOC}\n```\nDone.", ("Done.", HEREDOC, False)),
        ("```bash\ncat > a <<EOF\nb\n```\nDone.", ("Done.", "cat > a <<EOF\nb", False)),
        ("1. This:\n   ```bash\n   cat <<EOF\n   b\n   EOF\n   ```", ("1. This:", "cat <<EOF\nb\nEOF", False)),
        ("```bash\necho 1", ("", "echo 1", False)),
        ("````bash\ncat <<E\n```\nE\n```\n````", ("", "cat <<E\n```\nE\n```", False)),
        ("**I cannot:** it is gone.", ("**I cannot:** it is gone.", "", True)),
        ("What I cannot say: why.", ("What I cannot say: why.", "", False)),
        ("I cannot test it.\n```bash\nls\n```", ("I cannot test it.", "ls", False)),
        ("", ("", "", False)),
    ],
)
def test_a_reply_has_words_and_a_script(content: str, parts: tuple[str, str, bool]) -> None:
    assert parse(content) == DirectReply(*parts)


@pytest.mark.slow
def test_the_script_runs_in_the_workspace_apart_from_the_shell(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "it's here").mkdir(parents=True)
    (project / "it's here/add.py").write_text("def add(a, b):\n    return 'a + b'\n")
    (project / "data.bin").write_bytes(b"\xff\x00")
    script = "cd \"it's here\" && sed -i 's/add/plus/' add.py\nread -r line; echo \"'$line'\"\nexit 3"
    model = ScriptedLLM([f"I rename it.\n```bash\n{script}\n```"])
    done = handiwork.run(
        "Rename add to plus.", workspace=project, agent="DirectAgent", model=model, data=tmp_path / "data"
    )
    assert (done.outcome, done.state.outputs["message"]) == ("finished", "I rename it.\n\n''\n[exit code 3]")
    assert "+def plus(a, b):" in done.diff
    (asked,) = model.requests
    prompt = "".join(part.text or "" for part in asked[-1].content)
    assert "--- it's here/add.py\ndef add(a, b):\n    return 'a + b'\n" in prompt
    assert "--- data.bin\nError: " in prompt
    assert prompt.endswith(f"The task:\n\nRename add to plus.\n\n{REMINDER}")
