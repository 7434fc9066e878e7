"""A user's own skills: found, described and refused without running them, and used in a session."""

from __future__ import annotations

from pathlib import Path

import pytest

import handiwork
from handiwork.llm.scripted.script import Reply
from handiwork.session.skills import OwnSkillsError, absolute, load
from tests.session.bench import call, finish

SOURCE = '''import nowhere


def shout(text: str) -> str:
    """Return the text in capitals."""
    return text.upper()
'''


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Install a package with a module of skills and the entry point."""
    (folder / "their_package").mkdir(parents=True)
    (folder / "their_package/__init__.py").write_text("")
    (folder / "their_package/skills.py").write_text(SOURCE)
    metadata = folder / "their_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their_package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[handiwork.skills]\ntheirs = {point}\n")
    monkeypatch.syspath_prepend(folder)


def test_a_file_is_described_without_being_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    (file,) = load([absolute("mine.py")])
    assert [line.line for line in file.lines] == ["shout(text): Return the text in capitals."]
    assert file.for_sandbox() == {"name": "mine", "source": SOURCE, "functions": ["shout"]}


def test_a_package_gives_its_skills_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "their_package.skills")
    (file,) = load([absolute("theirs")])
    assert (file.name, [line.name for line in file.lines]) == ("skills", ["shout"])


def test_a_package_without_that_module_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "their_package.nothing")
    with pytest.raises(OwnSkillsError, match=r"their_package\.nothing is no Python module"):
        load(["theirs"])


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (None, "cannot be read: No such file"),
        ("def f(:", "mine.py, line 1: invalid syntax"),
        ("def f(): pass", "f has no docstring"),
        ("x = 1", "defines no public function"),
        ('def open_file(): "Open."', "the platform has a skill open_file already"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, source: str | None, problem: str) -> None:
    if source is not None:
        (tmp_path / "mine.py").write_text(source)
    with pytest.raises(OwnSkillsError, match=problem):
        load([str(tmp_path / "mine.py")])


def test_two_skills_of_one_name_and_an_unknown_name_are_refused(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(SOURCE)
    with pytest.raises(OwnSkillsError, match=r"a\.py has a skill shout already"):
        load([str(tmp_path / "a.py"), str(tmp_path / "b.py")])
    with pytest.raises(OwnSkillsError, match="there are no skills 'theirs'; installed: "):
        load(["theirs"])


def prompt_of(model: handiwork.ScriptedLLM) -> str:
    return "".join(part.text or "" for part in model.requests[0][0].content)


@pytest.mark.slow
@pytest.mark.usefixtures("new_user")
def test_a_session_has_them_in_its_prompt_and_its_notebook(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "mine.py").write_text(SOURCE.replace("import nowhere", ""))
    model = handiwork.ScriptedLLM([call("ipython", code="shout('a'), edit_file"), finish()])
    result = handiwork.run("shout", workspace=tmp_path / "project", model=model, skills=[str(tmp_path / "mine.py")])
    assert result.outcome == "finished"
    assert "  - shout(text): Return the text in capitals.\n" in prompt_of(model)
    assert result.state.skills == ("shout(text): Return the text in capitals.",)
    (said,) = [part.text or "" for part in model.requests[1][-1].content]
    assert "('A', <skill edit_file(" in said


@pytest.mark.usefixtures("new_user")
def test_without_any_the_prompt_has_those_of_the_platform_alone(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    model = handiwork.ScriptedLLM([Reply.model_validate(finish())])
    assert handiwork.run("nothing", workspace=tmp_path / "project", model=model).state.skills == ()
    assert "  - parse_xlsx(file_path): " in prompt_of(model)
