"""Worked examples, for models that follow examples better than instructions."""

from __future__ import annotations

from handiwork.llm.types import Message

REPAIR = (
    Message.text(
        "user",
        "area() is wrong: `make test` must succeed.\n\nFiles:\nMakefile\ngeometry/area.py\ngeometry/check.py",
    ),
    Message.text("assistant", '{"thought": "I run the tests.", "action": "bash", "command": "make test"}'),
    Message.text(
        "user",
        "check.py:4: AssertionError: area(2, 3) is 5, not 6\n[exit code 1]\n\n"
        "geometry/area.py:\ndef area(width, height):\n    return width + height\n",
    ),
    Message.text(
        "assistant",
        '{"thought": "area(2, 3) gives 2 + 3 = 5, but the check wants 6. It must multiply the sides, not add them.", '
        '"action": "edit", "path": "geometry/area.py", "old": "return width + height", "new": "return width * height"}',
    ),
    Message.text(
        "user",
        "-    return width + height\n+    return width * height\n\n$ make test\n[exit code 0]",
    ),
    Message.text(
        "assistant",
        '{"thought": "The check succeeds.", "action": "finish", "message": "area() multiplies the sides now."}',
    ),
)
"""The repair of a failing check."""

BLANK = (
    Message.text("user", "How many days are there from 3 March to 20 May? Finish with <answer>NUMBER</answer>."),
    Message.text(
        "assistant",
        '{"thought": "March has 31 days and April 30, but Python counts days without mistakes.", "action": "python", '
        '"code": "from datetime import date\\nprint((date(2023, 5, 20) - date(2023, 3, 3)).days)"}',
    ),
    Message.text("user", "78\n"),
    Message.text("assistant", '{"thought": "Python says 78.", "action": "finish", "message": "<answer>78</answer>"}'),
    Message.text("user", "Which shell does the user games have on this machine?"),
    Message.text(
        "assistant",
        '{"thought": "The shells of users are in /etc/passwd.", "action": "bash", '
        '"command": "grep ^games: /etc/passwd | cut -d: -f7"}',
    ),
    Message.text("user", "/usr/sbin/nologin\n"),
    Message.text("assistant", '{"thought": "That is its shell.", "action": "finish", "message": "/usr/sbin/nologin"}'),
    Message.text(
        "user",
        "All of Ann's cats are white, and Tom is a cat of Ann's. What is Tom like? 1) black 2) white 3) grey. "
        "Finish with <answer>NUMBER</answer>.",
    ),
    Message.text(
        "assistant",
        '{"thought": "Tom is one of Ann\'s cats, so Tom is white. That is 2. There is nothing to run.", '
        '"action": "finish", "message": "<answer>2</answer>"}',
    ),
)
"""Tasks without files: a computation, a lookup, and a question that needs only thought."""
