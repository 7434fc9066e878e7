"""A small repository with a bug, for a first task that needs no files of the user."""

from __future__ import annotations

import tempfile
from pathlib import Path

TASK = "The test suite fails. Find out why, and repair the code so that `python3 -m unittest` passes."

_TASKS = '''"""A list of things to do."""


class TaskList:
    """Tasks in the order in which they were added."""

    def __init__(self):
        self.tasks = []
        self.done = set()

    def add(self, title):
        """Add a task."""
        self.tasks.append(title)

    def finish(self, title):
        """Mark a task as done."""
        if title not in self.tasks:
            raise ValueError(f"no such task: {title}")
        self.done.append(title)

    def open(self):
        """Return the tasks that are not done."""
        return [title for title in self.tasks if title not in self.done]
'''

_TESTS = """import unittest

from todo.tasks import TaskList


class TaskListTest(unittest.TestCase):
    def test_a_new_task_is_open(self):
        tasks = TaskList()
        tasks.add("write")
        self.assertEqual(tasks.open(), ["write"])

    def test_a_finished_task_is_not_open(self):
        tasks = TaskList()
        tasks.add("write")
        tasks.add("test")
        tasks.finish("write")
        self.assertEqual(tasks.open(), ["test"])

    def test_only_known_tasks_can_be_finished(self):
        with self.assertRaises(ValueError):
            TaskList().finish("sleep")
"""

_FILES = {
    "todo/__init__.py": "",
    "todo/tasks.py": _TASKS,
    "tests/__init__.py": "",
    "tests/test_tasks.py": _TESTS,
}


def make(parent: Path) -> Path:
    """Create the repository in a new folder below ``parent``, and return that folder. Raises OSError."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="todo-", dir=parent))
    for name, text in _FILES.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return folder
