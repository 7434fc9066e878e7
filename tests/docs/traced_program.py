"""Runs `handiwork` and writes the files that its calls passed to a file: traced_program.py FILE ARGUMENT...

FILE gets a JSON object: ``entered`` lists the files whose functions were called before the first observation was in the
log, ``stacks`` has the files on the call stack, outermost first, at the calls of STOPS.
"""

from __future__ import annotations

import inspect
import json
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import handiwork
from handiwork.cli.main import app

PACKAGE = f"{Path(handiwork.__file__).parent}/"
STOPS = {
    ("llm/openai_compatible/stream.py", "feed"): "reply",
    ("sandbox/client.py", "_request_action"): "action",
    ("session/user_events.py", "approval"): "answer",
}
APPENDED = {
    "CmdOutputObservation": "observation",
    "AgentStateChangedObservation": "question",
    "ApprovalEvent": "approval",
}


class Trace:
    """The files entered so far, and the stacks at STOPS and at the first append of each event in APPENDED."""

    def __init__(self) -> None:
        self.entered: set[str] = set()
        self.stacks: dict[str, list[str]] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        called = event == "call" and code.co_flags & inspect.CO_OPTIMIZED  # no module and no body of a class
        if not called or not code.co_filename.startswith(PACKAGE) or "observation" in self.stacks:
            return
        file = code.co_filename.removeprefix(PACKAGE)
        self.entered.add(file)
        names = [STOPS.get((file, code.co_name))]
        if (file, code.co_name) == ("log/eventlog.py", "append"):
            names = [APPENDED.get(type(each).__name__) for each in frame.f_locals["events"]]
        for name in filter(None, names):
            self.stacks.setdefault(name, _stack(frame))


def _stack(frame: FrameType | None) -> list[str]:
    files: list[str] = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            files.insert(0, frame.f_code.co_filename.removeprefix(PACKAGE))
        frame = frame.f_back
    return files


if __name__ == "__main__":
    out, *arguments = sys.argv[1:]
    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        app(arguments)
    finally:
        sys.setprofile(None)
        Path(out).write_text(json.dumps({"entered": sorted(trace.entered), "stacks": trace.stacks}))
