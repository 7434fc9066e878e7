import pytest

from todo.tasks import TaskList
from todo.text import render


def test_a_new_task_is_open():
    tasks = TaskList()
    tasks.add("write")
    assert tasks.open() == ["write"]


def test_a_finished_task_is_not_open():
    tasks = TaskList()
    tasks.add("write")
    tasks.add("test")
    tasks.finish("write")
    assert tasks.open() == ["test"]


def test_only_known_tasks_can_be_finished():
    with pytest.raises(ValueError, match="no such task"):
        TaskList().finish("sleep")


def test_done_tasks_are_marked():
    tasks = TaskList()
    tasks.add("write")
    tasks.finish("write")
    assert render(tasks) == "[x] write"
