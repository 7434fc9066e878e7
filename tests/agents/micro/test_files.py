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


def test_what_a_prompt_may_have() -> None:
    inputs = "inputs: {files: array, note: {type: object, default: {}}}\n"
    body = """{% for file in files | sort %}
{{ loop.index }}. {{ file | upper }}{{ "!" if file == files[0] else "" }}
{% endfor %}
{{ files | join(", ") }}{{ ": " ~ note.text if note else "" }}; {{ task[:3] | trim or "nothing" }}
"""
    micro = parse(FILE, f"---\nname: a\n{inputs}---\n{body}")
    values = {"files": ["b", "a"], "note": {"text": "x"}, "task": ""}
    assert micro.prompt(values) == "1. A\n2. B!\nb, a: x; nothing"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("\n\nOne.\n{{ task.nothing }}", ":7: the prompt cannot be written: 'str object' has no attribute 'nothing'"),
        ("{{ task + 1 }}", ":4: the prompt cannot be written: can only concatenate str"),
    ],
)
def test_a_prompt_that_does_not_fit_its_inputs_is_told_with_its_line(body: str, told: str) -> None:
    with pytest.raises(MicroFileError) as error:
        parse(FILE, f"---\nname: a\n---\n{body}\n").prompt({"task": "x"})
    assert f"{FILE}{told}" in str(error.value)


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


def test_knowledge_as_openhands_publishes_it_names_an_agent() -> None:
    micro = parse(FILE, "---\nname: github\nagent: CodeActAgent\ntriggers:\n- github\n- git\n---\nUse a token.\n")
    assert (micro.name, micro.keys.triggers, micro.body) == ("github", ("github", "git"), "Use a token.")


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
        ("---\nname: a\ntriggers: yes\n---\nx\n", ":3: triggers: write words, like [git, commit]"),
        ("---\nname: a\ntools: [bash, 5]\n---\nx\n", ":3: tools: write words"),
        ("---\nname: a\noutputs:\n  class: string\n---\nx\n", ":4: a field cannot be named 'class'"),
        ("---\nname: a\n---\n{{ task }}\n{{ 'x' * 3000000000 }}\n", ":5: a prompt cannot have mul"),
        ("---\nname: a\n---\n{{ range(9) }}\n", ":4: a prompt cannot have call"),
        ("---\nname: a\n---\n{{ task | center(999999999) }}\n", ":4: a prompt has the filters count"),
        ("---\nname: a\n---\n{{ task | default(5) }}\n", ":4: a prompt has the filters count"),
        ("---\nname: a\n---\n{% include '/etc/passwd' %}\n", ":4: a prompt cannot have include"),
        (f"---\nname: a\n---\n{'{% for a in task %}' * 3}{'{% endfor %}' * 3}\n", ":4: a prompt cannot have more than"),
        (f"---\nname: a\n---\n{{{{ {'(' * 9_000} }}}}\n", ":4: the prompt is nested too deep"),
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
