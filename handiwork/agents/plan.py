"""The plan: an agent's tree of tasks for long work, computed from its actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from handiwork.events.action import TaskState

DONE: frozenset[TaskState] = frozenset({"completed", "abandoned", "verified"})
"""States of tasks that need no more work."""

_MARKS: dict[TaskState, str] = {"open": " ", "in_progress": ">", "completed": "x", "abandoned": "-", "verified": "v"}
_LISTED = 40


class InvalidTaskError(Exception):
    """The change is invalid and the plan stays unchanged; for an unknown task the text lists the valid ids."""


@dataclass(slots=True)
class Task:
    """A task of the plan. ``id`` is its position, from 0: "1" is the second task, "1.0" its first subtask."""

    id: str
    goal: str
    state: TaskState = "open"
    subtasks: list[Task] = field(default_factory=list["Task"])


@dataclass(slots=True)
class Plan:
    """A fold over AddTaskAction and ModifyTaskAction; ``tasks`` holds the top-level tasks in order."""

    tasks: list[Task] = field(default_factory=list[Task])

    @property
    def state(self) -> TaskState:
        """The state of the whole plan: "completed" if all top-level tasks are done, "open" if none has begun."""
        states = {task.state for task in self.tasks}
        if states and states <= DONE:
            return "completed"
        return "in_progress" if states - {"open"} else "open"

    def add(self, parent: str, goal: str, subtasks: Sequence[str] = ()) -> str:
        """Add an open task, with its subtasks, below task ``parent`` ("" is the top) and return its id.

        Raises InvalidTaskError if the parent does not exist or a goal is empty.
        """
        siblings = self.get(parent).subtasks if parent else self.tasks
        goals = [" ".join(text.split()) for text in (goal, *subtasks)]
        if not all(goals):
            raise InvalidTaskError("A task needs a goal: say in a few words what is to be done.")
        task_id = f"{parent}.{len(siblings)}" if parent else str(len(siblings))
        children = [Task(f"{task_id}.{number}", text) for number, text in enumerate(goals[1:])]
        siblings.append(Task(task_id, goals[0], subtasks=children))
        return task_id

    def modify(self, task_id: str, state: TaskState) -> None:
        """Set the state of a task.

        A done state ("completed", "abandoned", "verified") also applies to all subtasks that are not abandoned;
        "in_progress" also applies to every task above. Raises InvalidTaskError if the task does not exist.
        """
        path = self._path(task_id)
        if state == "in_progress":
            for task in path:
                task.state = state
        else:
            _set(path[-1], state)

    def get(self, task_id: str) -> Task:
        """Return the task. Raises InvalidTaskError if it does not exist."""
        return self._path(task_id)[-1]

    def text(self) -> str:
        """Return the plan as text: one line per task, indented by its depth, with a mark for its state.

        ``[ ]`` open, ``[>]`` in progress, ``[x]`` completed, ``[v]`` verified, ``[-]`` abandoned.
        """
        lines = [f"{'  ' * t.id.count('.')}[{_MARKS[t.state]}] {t.id} {t.goal}" for t in _all(self.tasks)]
        return "\n".join(lines) or "The plan is empty."

    def _path(self, task_id: str) -> list[Task]:
        """Return the task and all tasks above it, the topmost first."""
        path: list[Task] = []
        level = self.tasks
        while not path or path[-1].id != task_id:
            task = next((task for task in level if f"{task_id}.".startswith(f"{task.id}.")), None)
            if task is None:
                raise InvalidTaskError(self._unknown_task(task_id))
            path.append(task)
            level = task.subtasks
        return path

    def _unknown_task(self, task_id: str) -> str:
        ids = [task.id for task in _all(self.tasks)]
        if not ids:
            return f"There is no task {task_id!r}: the plan is empty. Add a task, with the parent ''."
        omitted = f" and {len(ids) - _LISTED} more" if len(ids) > _LISTED else ""
        return f"There is no task {task_id!r}. There are: {', '.join(ids[:_LISTED])}{omitted}."


def _set(task: Task, state: TaskState) -> None:
    task.state = state
    if state in DONE:
        for subtask in task.subtasks:
            if subtask.state != "abandoned":
                _set(subtask, state)


def _all(tasks: Sequence[Task]) -> Iterator[Task]:
    for task in tasks:
        yield task
        yield from _all(task.subtasks)
