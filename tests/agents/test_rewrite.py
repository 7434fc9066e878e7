"""A function that fails a check is written anew, in a conversation of its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.agents.codeact import constrained
from handiwork.agents.codeact.lines import functions
from handiwork.agents.codeact.message_cache import MessageCache
from handiwork.agents.codeact.rewrite import LONGEST, outline, suspects
from handiwork.agents.state import State
from handiwork.events.action import CmdRunAction, FileEditAction
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities
from tests.agents.states import check_golden, listed, ran, read, reply, shown, state_of, task

CODE = "def half(x):\n    return x / 2\n\n\ndef area(a, b):\n    return a + b\n"
TESTS = "from lib.area import area\n\ndef test_area():\n    assert area(2, 3) == 6\n"
TRACE = "tests/test_area.py:4: in test_area\n    assert area(2, 3) == 6\nE   AssertionError\n1 failed\n"


def failing_check(*, code: str = CODE, trace: str = TRACE) -> State:
    return state_of(
        task(),
        *listed("lib/area.py", "tests/test_area.py"),
        *(reply("{}"), *ran("pytest", trace, 1)),
        *read("tests/test_area.py", TESTS),
        *read("lib/area.py", code),
    )


def small_model(*replies: str) -> ScriptedLLM:
    return ScriptedLLM(replies, capabilities=Capabilities(tools=False))


async def test_the_function_that_the_check_names_is_asked_for_in_a_conversation_of_its_own() -> None:
    llm = small_model("Here it is:\n```python\nimport math\n\ndef area(a, b):\n    return a * b\n```\nIt multiplies.")
    action = await constrained.step(llm, failing_check(), MessageCache())
    assert isinstance(action, FileEditAction)
    assert CODE.replace(action.old, action.new) == CODE.replace("a + b", "a * b")
    check_golden("rewrite", shown(llm.requests[0]))


@pytest.mark.parametrize(
    "useless",
    ["I cannot.", "```\ndef other():\n    pass\n```", "```\ndef area(a, b):\n    return a + b\n```"],
    ids=["no code", "another function", "the same code"],
)
async def test_an_answer_without_a_new_function_is_asked_for_again(useless: str) -> None:
    llm = small_model(useless, "```\ndef area(a, b):\n    return a * b\n```")
    action = await constrained.step(llm, failing_check(), MessageCache())
    assert isinstance(action, FileEditAction)
    assert "a * b" in action.new


async def test_where_that_does_not_help_the_model_chooses_what_to_do() -> None:
    chosen = '{"thought": "", "action": "bash", "command": "python -m pytest -v"}'
    llm = small_model(*["I cannot."] * constrained.RETRIES, chosen)
    action = await constrained.step(llm, failing_check(), MessageCache())
    assert isinstance(action, CmdRunAction)


def test_the_likeliest_function_is_the_one_that_the_output_names_last() -> None:
    assert suspects(failing_check())[0] == ("lib/area.py", "area")
    deeper = TRACE + "lib/area.py:2: in half\n"
    assert suspects(failing_check(trace=deeper))[0] == ("lib/area.py", "half")


def test_a_function_too_long_to_be_written_anew_is_left_out() -> None:
    long = "def area(a, b):\n" + "    a += b\n" * LONGEST + "    return a\n"
    assert suspects(failing_check(code=long)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@cache\nasync def f(\n    x: int,\n) -> int:\n    y = 1\n\n    return y\n\nz = 2\n", (1, 6)),
        ("class A:\n    def f(self):\n        return 1\n\n    b = 2\n", (1, 2)),
        ("export async function f(x) {\n  return 1;\n}\nf();\n", (0, 2)),
        ("func (a *A) f(x int) int {\n\treturn 1\n}\n", (0, 2)),
        ("pub fn f() -> i32 {\n    1\n}\n", (0, 2)),
        ("def f\n  1\nend\nf\n", (0, 2)),
        ("def f(): return 1\nf()\n", (0, 0)),
    ],
    ids=["python", "method", "javascript", "go", "rust", "ruby", "one line"],
)
def test_where_a_function_begins_and_ends(text: str, expected: tuple[int, int]) -> None:
    found = functions(text)["f"]
    assert (found.first, found.last) == expected


@given(st.lists(st.sampled_from(["def f():", "  def g():", "  x = 1", "    y", "", "}", ")", "end"]), max_size=12))
def test_a_function_is_a_piece_of_its_file(lines: list[str]) -> None:
    for name, found in functions("\n".join(lines)).items():
        assert found.text.splitlines() == lines[found.first : found.last + 1]
        assert name in lines[found.first]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("def f(x):\n    return 1", "def f(x):\n    ..."),
        (
            "    def f(\n        x: int,\n    ) -> int:\n        y = 1",
            "    def f(\n        x: int,\n    ) -> int:\n        ...",
        ),
        (
            'def f(x):\n    """One.\n\n    Two.\n    """\n    return 1',
            'def f(x):\n    """One.\n\n    Two.\n    """\n    ...',
        ),
        ("function f(x) {\n  return 1;\n}", "function f(x) {\n    ..."),
        ("def f; 1; end", "def f; 1; end\n    ..."),
    ],
    ids=["python", "long signature", "docstring", "javascript", "one line"],
)
def test_the_outline_of_a_function_is_how_it_is_called_and_what_it_says_of_itself(function: str, expected: str) -> None:
    assert outline(function) == expected
