"""A session that has something to show in every pane."""

from __future__ import annotations

from typing import Any

from scripts.harness.serving import Api, bash

PAGE = """<!doctype html><html lang="en"><title>Greetings</title>
<h1>Greetings of the world</h1><p>Choose a language: <button>English</button> <button>French</button></p>
<p><a href="#more">More greetings</a></p>"""

GREET = '''"""Greets people in their language."""

WORDS = {"en": "Hello", "fr": "Bonjour"}


def greet(name: str, language: str = "en") -> str:
    return f"{WORDS[language]} {name}"
'''

TEST = """from greet import greet


def test_greets_in_french():
    assert greet("Ada", "fr") == "Bonjour, Ada!"


def test_an_unknown_language_is_english():
    assert greet("Ada", "xx") == "Hello, Ada!"
"""

RUN = """python3 -B - <<'END'
import test_greet as tests
for name in [name for name in dir(tests) if name.startswith("test_")]:
    try:
        getattr(tests, name)()
        print(f"\\033[32mpassed\\033[0m {name}")
    except Exception as error:
        print(f"\\033[31mfailed\\033[0m {name}: {type(error).__name__} {error}")
END"""

PICTURE = """import struct, zlib
from IPython.display import Image, display
rows = b"".join(b"\\0" + bytes(c for x in range(160) for c in (x, 2 * y, 200)) for y in range(90))
part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
head = struct.pack(">2I5B", 160, 90, 8, 2, 0, 0, 0)
data = part(b"IDAT", zlib.compress(rows))
display(Image(b"\\x89PNG\\r\\n\\x1a\\n" + part(b"IHDR", head) + data + part(b"IEND", b"")))
"""

IMPORT = "import sys\nsys.dont_write_bytecode = True\nsys.path.insert(0, '.')\nfrom greet import greet\n"

TASK = "Make the tests of `greet.py` pass: the comma is missing, and an unknown language is to be English."

PANES = {
    "Terminal": "passed test_greets_in_french",
    "Files": "greet.py",
    "Changes": "WORDS.get",
    "Notebook": "Bonjour Ada",
    "Browser": "index.html",
    "Plan": "3 of 3 done",
    "Timeline": "after event",
    "Cost": "By model",
    "Compare": "Compare with",
}
"""Every pane, and what is in it when it is there."""


def make(api: Api) -> str:
    """Run the session, and a fork of it, to their ends; return the session's id."""
    workspace = api.folder / "greetings"
    workspace.mkdir()
    for name, text in (("greet.py", GREET), ("test_greet.py", TEST), ("index.html", PAGE)):
        (workspace / name).write_text(text)
    session = api.create(*replies(str(workspace)), task=TASK, workspace=str(workspace), title="Greet politely")
    found = api.until(session, "finished", "error", "paused")
    assert found["state"] == "finished", found
    edited = next(event["id"] for event in api.events(session) if event["type"] == "FileEditObservation")
    said: list[dict[str, Any]] = [{"content": "as in the other"}] * 7
    script = api.script(*said, bash("sed -i 's/!//' test_greet.py greet.py"), call("finish", message="Both pass."))
    fork = api.post(f"{session}/fork", at=edited, model=script, message="Leave the exclamation mark away.")
    api.until(f"/api/sessions/{fork['id']}", "finished")
    return found["id"]


def replies(workspace: str) -> list[dict[str, Any]]:
    """Return what the model says; the tokens and the money are made up."""
    steps = [
        call("plan_task", goal="Make the tests pass", subtasks=["See which fail", "Repair greet()", "Test again"]),
        bash("seq 1 500; cat NOTES.md"),
        bash(RUN, said="I run the tests first, to see **which** of them fail and why."),
        call("modify_task", task_id="0.0", state="completed"),
        call("modify_task", task_id="0.1", state="in_progress"),
        call(
            "ipython",
            code=IMPORT + "greet('Ada', 'fr')",
        ),
        call(
            "edit",
            path="greet.py",
            old='    return f"{WORDS[language]} {name}"',
            new='    word = WORDS.get(language, WORDS["en"])\n    return f"{word}, {name}!"',
        ),
        call("modify_task", task_id="0.1", state="completed"),
        bash(RUN, said="Now both should pass:"),
        call("ipython", code=PICTURE),
        call("browse", url=f"file://{workspace}/index.html", view="visible"),
        call("delegate", task="Write a line about languages into NOTES.md."),
        bash("echo 'Languages: en, fr; others are greeted in English.' > NOTES.md"),
        call("finish", message="Wrote NOTES.md."),
        call("modify_task", task_id="0.2", state="completed"),
        call(
            "finish",
            message="Both tests pass.\n\n- `greet` puts the comma and the mark\n- unknown languages are English",
        ),
    ]
    usage = [
        {"input": 400 + 12 * n, "cache_read": 1800 * n, "cache_write": 250 * n, "output": 90 + n}
        for n in range(len(steps))
    ]
    return [
        {**step, "usage": used, "cost": 0.0021 * (n + 2)}
        for n, (step, used) in enumerate(zip(steps, usage, strict=True))
    ]


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "arguments": arguments}]}
