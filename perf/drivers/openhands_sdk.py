"""Runs inside the environment of openhands-sdk and openhands-tools. Prints one line of JSON at its end.

openhands_sdk.py run FOLDER URL STEPS    the agent of their first example, in FOLDER/project, kept in FOLDER/data
openhands_sdk.py shell FOLDER COUNT      a terminal: seconds to the end of its first command, and of COUNT more
openhands_sdk.py resume FOLDER EVENTS RUNS    a conversation of so many events: seconds to open it, RUNS times
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import json
import sys
import time
import uuid
from pathlib import Path

from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.tools.file_editor import FileEditorTool
from openhands.tools.task_tracker import TaskTrackerTool
from openhands.tools.terminal import TerminalTool

PAGE = 500


def agent(url: str) -> Agent:
    llm = LLM(model="openai/standin", base_url=url, api_key="none", usage_id="agent")
    names = (TerminalTool.name, FileEditorTool.name, TaskTrackerTool.name)
    return Agent(llm=llm, tools=[Tool(name=name) for name in names])


def conversation(folder: Path, url: str, steps: int, **more: object) -> Conversation:
    return Conversation(
        agent=agent(url),
        workspace=str(folder / "project"),
        persistence_dir=str(folder / "data"),
        max_iteration_per_run=steps + 10,
        **more,
    )


def run(folder: Path, url: str, steps: int) -> None:
    talk = conversation(folder, url, steps)
    talk.send_message("say hi")
    talk.run()
    talk.close()


def shell(folder: Path, count: int) -> dict[str, object]:
    from openhands.tools.terminal import TerminalAction, TerminalExecutor

    began = time.monotonic()
    terminal = TerminalExecutor(working_dir=str(folder))
    terminal(TerminalAction(command="echo hi"))
    start, echoes = time.monotonic() - began, []
    for number in range(count):
        began = time.monotonic()
        result = terminal(TerminalAction(command=f"echo hi {number}"))
        echoes.append(time.monotonic() - began)
        assert f"hi {number}" in result.text, result
    terminal.close()
    return {"start": start, "echo": echoes}


def resume(folder: Path, events: int, runs: int) -> dict[str, object]:
    identity = uuid.uuid4()
    (folder / "project").mkdir(parents=True, exist_ok=True)
    talk = conversation(folder, "http://127.0.0.1:9/v1", 500, conversation_id=identity, visualizer=None)
    talk.send_message("make the tests pass")
    # In its context the state is saved once, at the end, instead of after every event.
    with talk.state as state:
        for number in range((events - len(state.events)) // 2):
            for event in pair(number):
                state.append_event(event)
    talk.close()
    seconds = []
    for _ in range(runs):
        began = time.monotonic()
        talk = conversation(folder, "http://127.0.0.1:9/v1", 500, conversation_id=identity, visualizer=None)
        count = len(talk.state.events)
        page = talk.state.events[max(0, count - PAGE) :]
        seconds.append(time.monotonic() - began)
        assert count >= events - 2, count
        assert len(page) == min(count, PAGE)
        talk.close()
    return {"seconds": seconds}


def pair(number: int) -> list[object]:
    """Return a command and its observation, of the size that the others' have too."""
    from openhands.sdk.event import ActionEvent, ObservationEvent
    from openhands.sdk.llm import MessageToolCall, TextContent
    from openhands.tools.terminal import TerminalAction, TerminalObservation

    command, call = f"make test-{number}", f"call_{number}"
    action = ActionEvent(
        thought=[],
        action=TerminalAction(command=command),
        tool_name="terminal",
        tool_call_id=call,
        tool_call=MessageToolCall(
            id=call, name="terminal", arguments=json.dumps({"command": command}), origin="completion"
        ),
        llm_response_id=f"chatcmpl-{number}",
    )
    observation = TerminalObservation(command=command, content=[TextContent(text="ok\n" * 20)], exit_code=0)
    answer = ObservationEvent(observation=observation, action_id=action.id, tool_name="terminal", tool_call_id=call)
    return [action, answer]


if __name__ == "__main__":
    what, place, *rest = sys.argv[1:]
    if what == "run":
        run(Path(place), rest[0], int(rest[1]))
        print(json.dumps({}))
    elif what == "shell":
        print(json.dumps(shell(Path(place), int(rest[0]))))
    else:
        print(json.dumps(resume(Path(place), int(rest[0]), int(rest[1]))))
