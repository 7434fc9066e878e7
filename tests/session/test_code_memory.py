"""The memory of codebases: bounded, private, without secrets, and robust to damage."""

from __future__ import annotations

from pathlib import Path

from handiwork.events.code_memory import CodeEpisode, UsefulBlock
from handiwork.session.storage.code_memory import DOCSTRINGS, EPISODES, RECALLED, CodeMemory


def episode(task: str, solution: str = "") -> CodeEpisode:
    block = UsefulBlock(file_path="a.py", type="FUNCTION", prototype="def f()")
    return CodeEpisode(task=task, blocks=(block,), solution=solution)


def test_the_tasks_that_share_most_words_are_recalled_first_and_newer_ones_before_older(tmp_path: Path) -> None:
    memory = CodeMemory(tmp_path, "/home/me/project")
    for task in ("detect dogs in images", "translate a text", "detect cats in images", "count the words"):
        memory.remember(episode(task))
    recalled = [one.task for one in memory.recall("Detect the cats in many images.")]
    assert recalled == ["detect cats in images", "detect dogs in images", "count the words"]
    assert len(recalled) == RECALLED
    assert CodeMemory(tmp_path, "/home/me/other").recall("detect dogs") == ()


def test_a_task_that_is_solved_again_replaces_its_older_solution_and_old_tasks_go(tmp_path: Path) -> None:
    memory = CodeMemory(tmp_path, "/home/me/project")
    for number in range(EPISODES + 5):
        memory.remember(episode(f"task {number}"))
    memory.remember(episode("task 50", "x = 1"))
    tasks = [one.task for one in memory.episodes()]
    assert len(tasks) == len(set(tasks)) == EPISODES
    assert tasks[0] == "task 5"
    assert memory.episodes()[-1] == episode("task 50", "x = 1")


def test_it_is_private_redacted_and_can_be_cleared(tmp_path: Path) -> None:
    memory = CodeMemory(tmp_path, "/home/me/project", lambda text: text.replace("hunter2", "***"))
    memory.remember(episode("log in", "login('hunter2')"))
    (file,) = (tmp_path / "codebases").glob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    assert "hunter2" not in file.read_text()
    assert memory.episodes()[0].solution == "login('***')"
    memory.remember_docstrings({"a1": "log in as hunter2"})
    assert "hunter2" not in file.read_text()
    assert memory.clear() == (1, 1)
    assert memory.clear() == (0, 0)
    assert memory.episodes() == ()


def test_docstrings_are_recalled_by_their_blocks_and_the_oldest_go(tmp_path: Path) -> None:
    memory = CodeMemory(tmp_path, "/home/me/project")
    memory.remember(episode("one"))
    memory.remember_docstrings({f"block {number}": f"docstring {number}" for number in range(DOCSTRINGS)})
    memory.remember_docstrings({"new": "Return it."})
    assert memory.recall_docstrings(["new", "block 7", "block 0", "unknown"]) == {
        "new": "Return it.",
        "block 7": "docstring 7",
    }
    assert len(memory.docstrings()) == DOCSTRINGS
    assert [one.task for one in memory.episodes()] == ["one"]


def test_a_damaged_file_is_an_empty_memory_that_works_again(tmp_path: Path) -> None:
    memory = CodeMemory(tmp_path, "/home/me/project")
    memory.remember(episode("one"))
    (file,) = (tmp_path / "codebases").glob("*.json")
    file.write_text(file.read_text()[:-5])
    assert memory.recall("one") == ()
    memory.remember(episode("two"))
    assert [one.task for one in memory.episodes()] == ["two"]
