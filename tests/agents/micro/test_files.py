"""A micro agent's file: its front matter, its prompt, and the line of each mistake."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.agents.micro.definition import MicroFileError, parse

FILE = Path("agents/mine.md")

AGENT = """---
name: Greeter
description: Greets.
inputs:
  task: string
  times: {type: integer, default: 1}
outputs:
  greeting: string
tools: [bash]
model: anthropic:NAME
---
Greet {{ task }} {{ times }} times.
"""

KNOWLEDGE = "---\nname: git\ntriggers: [git, pull request]\n---\nUse {{ branches }}.\n"


def test_an_agent() -> None:
    micro = parse(FILE, AGENT)
    assert micro.name == "Greeter"
    assert micro.prompt({"task": "Ann", "times": 2}) == "Greet Ann 2 times."
    assert micro.keys.tools == ("bash",)
    assert micro.keys.model == "anthropic:NAME"


def test_the_files_name_is_the_default_name_and_task_the_default_input() -> None:
    micro = parse(FILE, "---\ndescription: x\n---\nDo it.\n")
    assert micro.name == "mine"
    assert list(micro.inputs) == ["task"]
    assert not micro.inputs["task"].required


@pytest.mark.parametrize(
    ("message", "trigger"),
    [
        ("push it with git", "git"),
        ("Git, please!", "Git"),
        ("(git)", "git"),
        ("open a pull request", "pull request"),
        ("make it digital", ""),
        ("the legitimate gits", ""),
        ("git_dir", ""),
        ("pull requests", ""),
    ],
)
def test_a_trigger_is_a_whole_word(message: str, trigger: str) -> None:
    assert parse(FILE, KNOWLEDGE).trigger_in(message) == trigger


def test_knowledge_is_no_template() -> None:
    assert parse(FILE, KNOWLEDGE).body == "Use {{ branches }}."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ":1: there is no front matter"),
        ("# A title\n", ":1: there is no front matter"),
        ("---\nname: a\n", ":1: the front matter has no end"),
        ("---\nname: [a\n---\nx\n", ":3: the YAML is invalid"),
        ("---\n- a\n---\nx\n", ":2: the front matter is not a list of KEY: VALUE lines"),
        ("---\n---\nx\n", ":2: the front matter is not a list of KEY: VALUE lines"),
        ("---\nname: a\nname: b\n---\nx\n", ":3: the key 'name' is here twice"),
        ("---\nname: a\ncolour: red\n---\nx\n", ":3: unknown key 'colour'; known: name, description"),
        ("---\nname: a b\n---\nx\n", ":2: name: string should match pattern"),
        ("---\nname: a\nagent: evil.py:Evil\n---\nx\n", ":3: agent: string should match pattern"),
        ("---\nname: &x a\ndescription: *x\n---\nx\n", ":3: the front matter has an alias"),
        (f"---\nname: {'[' * 5_000}\n---\nx\n", ":2: the front matter is nested more than 10 deep"),
        (f"---\nname: {'x' * 20_000}\n---\nx\n", ":2: the front matter has more than 16000 characters"),
        ("---\nname: a\n---\n\n", ":2: the file has no text below its front matter"),
        ("---\nname: a\ninputs:\n  n: {type: int}\n---\nx\n", ":4: inputs.n.type: input should be 'string'"),
        ("---\nname: a\ninputs:\n  n: {type: integer, default: x}\n---\nx\n", ":4: the default 'x' is not of the type"),
        ("---\nname: a\noutputs:\n  a-b: string\n---\nx\n", ":4: a field cannot be named 'a-b'"),
        ("---\nname: a\noutputs:\n  copy: string\n---\nx\n", ":4: a field cannot be named 'copy'"),
        ("---\nname: a\ninputs:\n  e: {type: integer, enum: [a]}\n---\nx\n", ":4: enum is for strings"),
        ("---\nname: a\ntriggers: []\n---\nx\n", ":3: triggers needs a word"),
        ("---\nname: a\ntriggers: git\ntools: [bash]\n---\nx\n", ":4: tools is for agents"),
        ("---\nname: a\n---\n\nSee {{ b }}.\n", ":5: 'b' is not an input: declare it below inputs"),
        ("---\nname: a\n---\nx\n{% if task %}\n", ":5: Unexpected end of template"),
        ("---\nname: !!python/object:os.system {}\n---\nx\n", ":2: the YAML is invalid"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(MicroFileError) as error:
        parse(FILE, text)
    assert f"{FILE}{told}" in str(error.value)


@given(st.text(alphabet="-\n: a{}[]%'\"&*!#|>x\t\r\u2028é", max_size=60))
def test_any_text_is_a_file_or_a_told_mistake(text: str) -> None:
    for source in (text, f"---\n{text}\n---\nbody\n", f"---\nname: a\n---\n{text}"):
        with suppress(MicroFileError):
            parse(FILE, source)
