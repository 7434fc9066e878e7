"""SWEAgent in real sandboxes, with scripted models: what the model reads, what is run, and what is submitted."""

from __future__ import annotations

import asyncio
import json
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import handiwork
from handiwork.agents.base import Agent, Step
from handiwork.agents.codeact.finish import NOT_DONE
from handiwork.agents.state import State
from handiwork.agents.swe_agent import SWEAgent, SWENotes
from handiwork.agents.swe_agent.install import BundleFolder, InstallToolsAction
from handiwork.events.action import AgentDelegateAction, AgentFinishAction, CmdRunAction, MessageAction
from handiwork.events.base import Action
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities, Message
from handiwork.sandbox.host import HostSandbox
from handiwork.session.run import RunResult
from tests.agents.states import state_of, task
from tests.agents.swe_agent.published import write_published
from tests.sandbox.helpers import Blobs

TEXT = Capabilities(tools=False, window=16_384)
CALC = "import os\n\n\ndef add(a, b):\n    return a - b\n\n\n" + "".join(f"N{n} = {n}\n" for n in range(150))

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("new_user")]


SHOW = "echo $PATH $PYTHONPATH $PAGER $MINE; type -P submit"


class Delegator(Agent):
    """Looks at its shell before and after SWEAgent has used it."""

    def step(self, state: State) -> Step:
        steps: list[Action] = [
            CmdRunAction(command=f"export MINE=1; {SHOW}"),
            AgentDelegateAction(agent="SWEAgent", inputs={"task": "Nothing."}),
            CmdRunAction(command=SHOW),
        ]
        done = len(state.history) - 1
        if done < len(steps):
            return steps[done]
        before, after = (state.history[number][1] for number in (1, 3))
        assert before is not None
        assert after is not None
        return AgentFinishAction(outputs={"before": before.text, "after": after.text})


def block(command: str, thought: str = "I go on.") -> str:
    return f"{thought}\n```\n{command}\n```"


def session(
    tmp_path: Path, replies: Sequence[Any], capabilities: Capabilities = TEXT, **settings: Any
) -> tuple[RunResult, ScriptedLLM]:
    """Run SWEAgent on a small repository, and return the result and the model."""
    workspace = tmp_path / "project"
    if not workspace.exists():
        workspace.mkdir()
        (workspace / "calc.py").write_text(CALC)
        (workspace / "check.py").write_text("from calc import add\nassert add(1, 2) == 3\nprint('right')\n")
        (workspace / "words.txt").write_text("a word\n" * 120)
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Begin"]):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=workspace, check=True)
        (workspace / "draft.txt").write_text("not committed\n")
    model = ScriptedLLM(replies, capabilities=capabilities)
    given = {"agent": "SWEAgent", "snapshots": 0, **settings}
    return handiwork.run("add(1, 2) must be 3.", workspace=workspace, model=model, **given), model


def prompt(model: ScriptedLLM, request: int = -1) -> str:
    """Return the text of a request, without the demonstration."""
    messages = (message for message in model.requests[request] if not message.example)
    return "\n".join(part.text or "" for message in messages for part in message.content)


def text_of(message: Message) -> str:
    return "".join(part.text or "" for part in message.content)


def commands(result: RunResult) -> list[str]:
    return [a.command for a, _ in result.state.history if isinstance(a, CmdRunAction) and not a.command.startswith("_")]


def test_a_small_model_is_asked_again_before_it_runs_what_has_failed_or_has_run_twice(tmp_path: Path) -> None:
    false, true = block("false"), block("true")
    replies = [false, false, block("echo 1"), true, true, true, block("submit"), "question"]
    result, _ = session(tmp_path, replies)
    assert commands(result) == ["false", "echo 1", "true", "true", "submit"]


def test_a_repetition_is_told_without_the_commands_of_the_agent_itself(tmp_path: Path) -> None:
    asked_again = [block("pwd")] * 3
    replies = [block("pwd"), block("pwd"), *asked_again, *asked_again, block("submit"), "question"]
    result, model = session(tmp_path, replies)
    assert commands(result) == [*["pwd"] * 4, "submit"]
    assert "The same was done 4 times with the same result: run `pwd`." in prompt(model, 8)


def test_a_small_model_is_told_once_that_it_submits_no_change_where_one_is_asked_for(tmp_path: Path) -> None:
    submit = block("submit", "It is right now.")
    result, model = session(tmp_path, [submit, '{"answer": "repair"}', block("open calc.py"), submit])
    assert commands(result) == ["submit", "open calc.py", "submit"]
    assert NOT_DONE in prompt(model, 2)
    assert result.state.outputs["exit_status"] == "submitted"


def test_the_tools_work_after_a_command_has_set_the_path_of_python(tmp_path: Path) -> None:
    edit = "edit 5:5\n    return a + b\nend_of_edit"
    replies = [block("export PYTHONPATH=src"), block("open calc.py"), block(edit), block("echo at $PYTHONPATH")]
    result, model = session(tmp_path, [*replies, block("submit")])
    assert "5:    return a - b" in prompt(model, 2)
    assert "+    return a + b\n" in str(result.state.outputs["patch"])
    assert "at src" in prompt(model, 4)


def test_it_views_searches_edits_and_submits(tmp_path: Path) -> None:
    wrong, right = "edit 5:5\n    return a + c\nend_of_edit", "edit 5:5\n    return a + b\nend_of_edit"
    replies = [
        block("open calc.py"),
        block("search_dir word"),
        block(wrong),
        block("vim calc.py"),
        "I have no command.",
        block(right),
        block("goto 100"),
        block("make --version >/dev/null; true"),
        block("python3 check.py"),
        block("submit", "It is right now."),
    ]
    result, model = session(tmp_path, replies)
    assert result.outcome == "finished", result.state.last_error
    outputs = result.state.outputs
    assert outputs["exit_status"] == "submitted"
    assert outputs["message"] == "It is right now."
    patch = str(outputs["patch"])
    assert "-    return a - b\n+    return a + b\n" in patch
    assert patch.count("diff --git") == 1, "the tools, the cache and what was there before are no part of it"
    assert result.diff.count("+++") == 1

    first, viewed, searched = (prompt(model, n) for n in range(3))
    assert "add(1, 2) must be 3." in first
    assert "(157 lines total)]" in viewed
    assert "\n100:N92 = 92\n(57 more lines below)" in viewed
    assert "(Open file: " in viewed
    assert "More than 50 results: only the first 50 are shown. Narrow your search" in searched

    refused = prompt(model, 3)
    assert "undefined name 'c'" in refused
    assert "5:    return a + c" in refused
    assert "5:    return a - b" in refused, "both versions are shown"
    assert "`vim` waits for keys" in prompt(model, 4)
    assert "must have one thought and one command" in prompt(model, 5)

    after = prompt(model, 6)
    assert "File updated." in after
    for gone in ("undefined name", "`vim` waits", "I have no command.", "must have one thought"):
        assert gone not in after, "failed turns are dropped after a success"
    last = prompt(model)
    assert "did not produce any output" in last
    assert "right\n(Open file: " in last
    assert "Old environment output: (102 lines omitted)" in last, "only the last five outputs are whole"
    assert last.count("[File: ") == 2
    assert len(first) < 7_500, "the prompt of a small model stays below 2,500 tokens"
    assert "make --version >/dev/null; true" in commands(result)


def test_a_limit_submits_the_changes(tmp_path: Path) -> None:
    replies = [block("printf 'def add(a, b):\\n    return a + b\\n' > calc.py"), block("touch new.txt; rm check.py")]
    result, _ = session(tmp_path, replies, max_iterations=3)
    assert result.outcome == "finished", result.state.last_error
    assert result.state.outputs["exit_status"] == "submitted (exit_cost)"
    patch = str(result.state.outputs["patch"])
    assert "+    return a + b\n" in patch
    assert "deleted file mode" in patch
    assert "new.txt" in patch


def write_bundle(folder: Path, config: str, install: str = "", **executables: str) -> None:
    """Write a bundle that finds its files where SWE-agent puts them: below /root."""
    (folder / "bin").mkdir(parents=True)
    (folder / "config.yaml").write_text(config)
    if install:
        (folder / "install.sh").write_text(install)
    for name, text in executables.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(stat.S_IRUSR | stat.S_IWUSR)  # SWE-agent makes them executable itself


async def test_an_installation_that_the_user_interrupts_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    write_bundle(tmp_path / "slow", "tools: {}\n", install='touch "$ROOT/begun"; sleep 60\n')
    install = InstallToolsAction(bundles=(BundleFolder(path=str(tmp_path / "slow")),), root=str(tmp_path / "project"))
    sandbox = HostSandbox(tmp_path / "project", Blobs().save)
    await sandbox.start()
    try:
        installing = asyncio.create_task(install.execute(sandbox.execute))
        async with asyncio.timeout(60):
            while not (tmp_path / "project/begun").exists():
                await asyncio.sleep(0.01)
        await sandbox.interrupt()
        interrupted = await installing
    finally:
        await sandbox.close()
    state = state_of(task("Go."), install, interrupted)
    state.data = SWENotes()
    again = await SWEAgent(ScriptedLLM([])).step(state)
    assert not isinstance(again, Action)
    assert isinstance(again[0], InstallToolsAction)


NOTES = {
    "config": """\
tools:
  note:
    signature: 'note "<text>" [<times>]'
    docstring: keeps a note
    arguments:
      - {name: text, type: string, description: the note, required: true}
      - {name: times, type: integer, description: how often, required: false}
state_command: _state_notes
""",
    "install": '_write_env NOTES "${FIRST:-none}"\nexport NOTED=yes\n',
    "note": """\
#!/usr/bin/env python3
import sys
sys.path.insert(0, "/root/tools/registry/lib")
from registry import registry
registry["NOTES"] = registry.get("NOTES") + "," + sys.argv[1]
open("/root/notes.txt", "a").write(sys.argv[1])
print("noted", registry["COLOUR"], registry.get("MISSING", "nothing"))
""",
    "_state_notes": """\
#!/usr/bin/env python
import json
from pathlib import Path
from registry import registry
state = json.loads(Path("/root/state.json").read_text())
state["notes"] = registry["NOTES"]
Path("/root/state.json").write_text(json.dumps(state))
""",
}
SUBMIT = {
    "config": "tools:\n  submit:\n    signature: submit\n    docstring: submits\n    arguments: []\n",
    "submit": """\
#!/usr/bin/env bash
cd "$ROOT" && git add -A && git diff --cached > /root/model.patch
echo "<<SWE_AGENT_SUBMISSION>>"
cat /root/model.patch
echo "<<SWE_AGENT_SUBMISSION>>"
""",
}
CONFIGURATION = """\
agent:
  model: {name: gpt-4o, per_instance_cost_limit: 2}
  templates:
    system_template: 'Commands: {{command_docs}}'
    instance_template: 'ISSUE: {{problem_statement}} ({{notes}}, {{WINDOW}})'
    next_step_template: '{{observation}} (notes: {{notes}})'
  tools:
    env_variables: {WINDOW: 40, FIRST: first}
    registry_variables: {COLOUR: green}
    bundles:
      - path: tools/registry
      - path: tools/notes
      - path: tools/submit
    parse_function: {type: xml_thought_action}
  history_processors:
    - type: last_n_observations
      n: 5
    - type: cache_control
      last_n_messages: 2
env:
  deployment: {image: 'python:3.11'}
"""


def test_bundles_and_a_configuration_of_ones_own(tmp_path: Path) -> None:
    home = tmp_path / "sweagent"
    write_bundle(home / "tools/notes", **NOTES)
    write_bundle(home / "tools/submit", **SUBMIT)
    (home / "config").mkdir()
    file = home / "config/mine.yaml"
    file.write_text(CONFIGURATION)
    replies = [
        "<command>\nnote 'two words' && echo $NOTED\n</command>",
        "<command>sed -i 's/a - b/a + b/' calc.py; cd /tmp</command>",
        "<command>\nsubmit\n</command>",
    ]
    result, model = session(tmp_path, replies, agent=str(file))
    assert result.outcome == "finished", result.state.last_error
    assert "ISSUE: add(1, 2) must be 3. (first, 40)" in prompt(model, 0)
    assert 'note "<text>" [<times>]\n  keeps a note' in prompt(model, 0)
    assert "noted green nothing\nyes (notes: first,two words)" in prompt(model, 1)
    assert "+    return a + b\n" in str(result.state.outputs["patch"])
    (notice,) = [a.content for a, _ in result.state.history if isinstance(a, MessageAction) and a.source == "agent"]
    assert "- agent.model: the model comes from --model" in notice
    assert "- env: " in notice
    assert "- agent.history_processors.cache_control: " in notice
    assert (home / "tools/notes/bin/note").read_text() == NOTES["note"], "the user's bundle stays as it is"


@pytest.mark.parametrize(
    ("settings", "capabilities", "status"),
    [
        ({"max_cost": 1.0}, TEXT, "exit_cost"),
        ({"max_tokens": 500}, TEXT, "exit_cost"),
        ({"max_time": 15.0}, TEXT, "exit_total_execution_time"),
    ],
)
def test_every_limit_submits(tmp_path: Path, settings: dict[str, Any], capabilities: Capabilities, status: str) -> None:
    spent = {"cost": 0.6, "usage": {"input": 400, "output": 0}}
    replies = [{"content": block("echo more >> calc.py"), **spent}] * 2 + [{"content": block("sleep 60"), **spent}] * 9
    result, _ = session(tmp_path, replies, capabilities, **settings)
    assert result.outcome == "finished", result.state.last_error
    assert result.state.outputs["exit_status"] == f"submitted ({status})"
    assert "+more" in str(result.state.outputs["patch"])


def test_native_calls_programs_that_wait_and_a_new_shell(tmp_path: Path) -> None:
    def call(name: str, **arguments: object) -> dict[str, object]:
        return {"content": "I go on.", "tool_calls": [{"name": name, "arguments": arguments}]}

    replies = [
        call("open", path="calc.py"),
        {"content": "", "tool_calls": [{"name": "scroll_up"}, {"name": "scroll_down"}]},
        call("edit", start_line=5, end_line=5, replacement_text="    return a + b\n"),
        call("edit", start_line=1, end_line=3, replacement_text=""),
        call("bash", command="read -r line"),
        call("bash", command="exit 3"),
        call("bash", command="python3 check.py"),
        call("submit"),
    ]
    result, model = session(tmp_path, replies, Capabilities())
    assert result.outcome == "finished", result.state.last_error
    assert "calls exactly one tool, and yours calls 2" in prompt(model, 2)
    assert "calls exactly one tool" not in prompt(model, 3)
    assert "waited for input" in prompt(model, 5)
    assert "right" in prompt(model, 7)
    patch = str(result.state.outputs["patch"])
    assert "+    return a + b" in patch
    assert "-import os\n-\n-\n" in patch


def test_without_a_repository_and_with_replies_that_are_none(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "calc.py").write_bytes(b"x = 1\r\n" + bytes(range(128, 256)) + b"\n")
    replies = [block("cp calc.py copy.py; echo 'y = 2' >> calc.py"), *["I wonder."] * 4]
    result, _ = session(tmp_path, replies)
    assert result.outcome == "finished", result.state.last_error
    assert result.state.outputs["exit_status"] == "submitted (exit_format)"
    assert result.state.outputs["message"] == "I wonder."
    assert "+y = 2" in str(result.state.outputs["patch"])
    assert not (workspace / ".git").exists()


def test_a_resumed_session_has_its_tools(tmp_path: Path) -> None:
    """A new process has a new shell, whose PATH lacks them."""
    script = tmp_path / "replies.jsonl"
    commands = ["open calc.py", "goto 5", "sed -i 's/a - b/a + b/' calc.py", "submit"]
    script.write_text("".join(f"{json.dumps({'content': block(command)})}\n" for command in commands))
    run = [str(Path(sys.executable).with_name("handiwork"))]
    settings = ["--agent", "SWEAgent", "--protocol", "text", "--model", f"scripted:{script}"]
    (tmp_path / "project").mkdir()
    (tmp_path / "project/calc.py").write_text(CALC)
    task = ["run", "Mend it.", "--workspace", str(tmp_path / "project"), *settings, "--max-iterations", "2"]
    first = subprocess.run([*run, *task, "--json"], capture_output=True, text=True)
    assert "submitted (exit_cost)" in first.stdout, first.stderr
    resumed = subprocess.run(
        [*run, "resume", "--message", "Go on.", "--max-iterations", "20", "--json"], capture_output=True, text=True
    )
    assert "not found" not in resumed.stdout
    assert '"exit_status":"submitted"' in resumed.stdout.replace(" ", ""), resumed.stderr
    assert "+    return a + b" in resumed.stdout


def test_replies_in_json(tmp_path: Path) -> None:
    def act(name: str, **arguments: object) -> str:
        return json.dumps({"thought": "I go on.", "action": name, **arguments})

    replies = [
        act("bash", command="edit 1:1\nx\nend_of_edit"),
        act("open", path="calc.py", line_number=5),
        act("edit", start_line=5, end_line=5, replacement_text="    return a + b"),
        act("submit"),
    ]
    result, model = session(tmp_path, replies, Capabilities(tools=False, protocol="json"))
    assert result.outcome == "finished", result.state.last_error
    assert '"action": "search_dir"' in prompt(model, 0)
    assert "No file is open" in prompt(model, 1), "the text of an edit is one in every form"
    assert "+    return a + b" in str(result.state.outputs["patch"])


def test_a_delegator_gets_its_shell_back(tmp_path: Path) -> None:
    result, _ = session(tmp_path, [block("export MINE=2"), block("submit"), "question"], agent=Delegator)
    assert result.outcome == "finished", result.state.last_error
    assert str(result.state.outputs["before"]).endswith(" 1\n")
    assert result.state.outputs["after"] == result.state.outputs["before"]


RIGHT, WRONG = "    return a + b  # it's `b` and $a", "    return a + (c"


@pytest.mark.parametrize("form", ["thought_action", "function_calling"])
def test_bundles_as_swe_agent_publishes_them_run_unchanged(tmp_path: Path, form: str) -> None:
    def call(name: str, **arguments: object) -> dict[str, object]:
        return {"content": "I go on.", "tool_calls": [{"name": name, "arguments": arguments}]}

    def edit(text: str) -> Any:
        native = call("edit", start_line=5, end_line=5, replacement_text=text)
        return native if form == "function_calling" else block(f"edit 5:5\n{text}\nend_of_edit")

    steps: list[tuple[Any, str, str]] = [
        (call("search_file", search_term="N1"), "search_file N1", "No file open"),
        (call("open", path="calc.py", line_number=100), 'open "calc.py" 100', "(57 more lines above)"),
        (call("search_dir", search_term="N149"), "search_dir N149", "calc.py (1 matches)"),
        (call("search_file", search_term="N149"), "search_file N149", ":157:N149 = 149"),
        (call("find_file", file_name="ch*.py"), 'find_file "ch*.py"', "./check.py"),
        (call("scroll_up"), "scroll_up", "57 more lines below"),
        (call("scroll_down"), "scroll_down", "57 more lines above"),
        (call("goto", line_number=5), "goto 5", "5:    return a - b"),
        (call("create", filename="x.txt"), "create x.txt", "x.txt (1 lines total)"),
        (call("bash", command="rm x.txt"), "rm x.txt", "no output"),
        (call("open", path="calc.py"), "open calc.py", "(Open file: "),
    ]
    replies = [native if form == "function_calling" else block(line) for native, line, _ in steps]
    replies += [edit(WRONG), edit(RIGHT), block("python3 check.py"), block("submit")]
    if form == "function_calling":
        replies[-2:] = [call("bash", command="python3 check.py"), call("submit")]
    capabilities = Capabilities(tools=form == "function_calling", window=32_000)
    file = write_published(tmp_path / "sweagent", form)
    before = {path: path.read_bytes() for path in file.parents[1].rglob("*") if path.is_file()}
    result, model = session(tmp_path, replies, capabilities, agent=str(file))
    assert result.outcome == "finished", result.state.last_error
    for number, (_, line, expected) in enumerate(steps, 1):
        assert expected in text_of(model.requests[number][-1]), line
    first = text_of(model.requests[0][-1])
    assert "A DEMONSTRATION:\nMend old.py.\nI open it.\n```\nopen old.py\n```\n1:x = 1\nDone." in first
    assert "A system message" not in first
    refused, made, checked = (text_of(model.requests[number][-1]) for number in (-3, -2, -1))
    assert "- E999" in refused or "- F821" in refused
    assert f"5:{RIGHT}\n" in made
    assert checked.startswith("right\n(Open file: ")
    patch = str(result.state.outputs["patch"])
    assert f"-    return a - b\n+{RIGHT}\n" in patch
    assert "draft.txt" in patch, "their submit takes all that is not committed"
    assert {path: path.read_bytes() for path in file.parents[1].rglob("*") if path.is_file()} == before


def test_a_shell_inside_the_shell_is_ended(tmp_path: Path) -> None:
    result, model = session(tmp_path, [block("I start `bash` now."), block("echo $PAGER"), block("submit"), "question"])
    assert result.outcome == "finished", result.state.last_error
    assert commands(result)[1:4] == ["C-c", "C-d", "echo $PAGER"]
    assert prompt(model, -2).rpartition("echo $PAGER")[2].split()[1] == "cat", "the shell is the one with the tools"
