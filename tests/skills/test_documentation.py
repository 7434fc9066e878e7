"""The lines that document skills for the model."""

from __future__ import annotations

import inspect

import pytest

import handiwork.skills
from handiwork.skills import SKILLS
from handiwork.skills.documentation import documentation, skills_in


def test_every_skill_has_a_line_with_the_parameters_that_it_takes() -> None:
    assert [skill.name for skill in documentation()] == list(SKILLS)
    for skill in documentation():
        parameters = list(inspect.signature(getattr(handiwork.skills, skill.name)).parameters)
        listed = skill.line.removeprefix(f"{skill.name}(").partition("):")[0]
        assert [part.partition("=")[0] for part in listed.split(", ") if part] == parameters


def test_all_lines_together_are_short() -> None:
    assert sum(len(skill.line) for skill in documentation()) < 2000
    assert not any("\n" in skill.line for skill in documentation())


def test_a_file_of_skills_is_described_by_its_public_functions() -> None:
    source = '''
import not_installed

async def ask(question: str, *, times: int = 1) -> str:
    """Ask it,
    and wait.

    More words.
    """

def _helper(): pass

class Other: pass

def run(*names, **options):
    "Run them."
'''
    assert [skill.line for skill in skills_in(source)] == [
        "await ask(question, *, times=1): Ask it, and wait.",
        "run(*names, **options): Run them.",
    ]
    assert [skill.name for skill in skills_in(f"__all__ = ['run']\n{source}")] == ["run"]


def test_a_function_without_a_docstring_is_no_skill() -> None:
    with pytest.raises(ValueError, match=r"g has no docstring.*_g"):
        skills_in("def g(): pass")


def test_there_is_no_other_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'rm_rf'"):
        handiwork.skills.rm_rf  # noqa: B018
