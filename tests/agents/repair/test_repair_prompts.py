"""What RepairAgent asks the model, step by step, on states as a session would have logged them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import cast

import pytest
from pydantic import JsonValue

from handiwork.agents.base import Step
from handiwork.agents.repair.agent import RepairAgent
from handiwork.agents.repair.edits import TextEdit, applied
from handiwork.agents.repair.files import LIST, MOST_LISTED
from handiwork.agents.repair.functions import functions, replaced
from handiwork.agents.repair.localise import chosen_places
from handiwork.agents.repair.places import Project
from handiwork.agents.repair.validation import ValidationAgent
from handiwork.agents.state import State
from handiwork.events.action import AgentRejectAction, AgentThinkAction, CmdRunAction, FileReadAction, ForkAction
from handiwork.events.base import Event
from handiwork.events.observation import ChildOutcome, ErrorObservation, ForkObservation
from handiwork.events.record import SessionStarted
from handiwork.llm.scripted.model import ScriptedLLM
from tests.agents.silent_model import OftenSilent
from tests.agents.states import check_golden, file_read, ran, reply, shown, state_of, task

CODE = "def half(x):\n    return x / 2\n\n\ndef area(a, b):\n    return a + b\n"
USES = "from lib.area import area\n\n\ndef tiles(a, b):\n    return area(a, b) * 4\n"
TESTS = "from lib.tiles import tiles\n\n\ndef test_tiles():\n    assert tiles(2, 3) == 24\n"
TRACE = "tests/test_tiles.py:5: in test_tiles\n    assert tiles(2, 3) == 24\nE   assert 20 == 24\n1 failed\n"
CHECK = "python3 -m pytest -q"
FILES = "lib/area.py\nlib/tiles.py\ntests/test_tiles.py"


def failing(*more: Event, trace: str = TRACE, files: str = FILES) -> State:
    return state_of(
        task(f"`{CHECK}` fails: the tiles are too few."),
        *ran(LIST, files, 0),
        *ran(CHECK, trace, 1),
        *file_read("tests/test_tiles.py", TESTS),
        *file_read("lib/tiles.py", USES),
        *file_read("lib/area.py", CODE),
        *more,
    )


async def step(state: State, *replies: str) -> tuple[Step, ScriptedLLM]:
    llm = OftenSilent(replies)
    return await RepairAgent(llm).step(state), llm


def validated(first: Step, output: str = "1 failed") -> list[Event]:
    """The first round as the log has it once its only candidate has failed, with this output of the check."""
    assert isinstance(first, ForkAction)
    assert len(first.children) == 1
    failed = ChildOutcome(agent="a", outcome="rejected", outputs={"exit_code": 1, "output": output})
    return [first, ForkObservation(outcomes=(failed,))]


async def test_a_round_asks_for_each_candidate_in_a_conversation_of_its_own() -> None:
    replies = [
        "```python\ndef tiles(a, b):\n    return a * b * 4\n```",
        "```python\ndef tiles(a, b):\n    return 24\n```",
        "```python\ndef area(a, b):\n    return a * b * 1\n```",
        "lib/area.py\n```python\ndef area(a, b):\n    return a * b\n```",
        '{"line": "return area(a, b) * 4", "new": "return 25"}',
    ]
    first, alone = await step(failing(), replies[0])
    action, llm = await step(failing(*validated(first)), *replies[1:])
    assert isinstance(first, ForkAction)
    assert isinstance(action, ForkAction)
    assert [inputs["task"] for _, inputs in (*first.children, *action.children)] == [
        "rewrite tiles in lib/tiles.py",
        "write tiles in lib/tiles.py anew",
        "rewrite area in lib/area.py",
        "repair lib/tiles.py, lib/area.py together",
        "replace a line of tiles in lib/tiles.py: return area(a, b) * 4",
    ]
    assert all(inputs["check"] == CHECK for _, inputs in action.children)
    check_golden("repair", "\n".join(shown(request) for request in (*alone.requests, *llm.requests)))


def tiles(body: str) -> str:
    return f"```python\ndef tiles(a, b):\n    return {body}\n```"


async def test_a_reply_that_is_of_no_use_is_asked_for_again() -> None:
    replies = ["I cannot.", tiles("area(a, b) * 4"), tiles("0")]
    action, llm = await step(failing(), *replies)
    assert isinstance(action, ForkAction)
    assert ["return 0" in str(action.children[0][1]["edits"]), len(action.children)] == [True, 1]
    assert len(llm.requests) == 3
    assert len({shown(request) for request in llm.requests}) == 1


async def test_a_candidate_given_twice_is_validated_before_more_are_asked_for() -> None:
    first, _ = await step(failing(), tiles("0"))
    again = tiles("1").replace("    return", "    # As before.\n    return")
    area = "```\ndef area(a, b):\n    return 2\n```"
    following, llm = await step(failing(*validated(first)), tiles("0"), tiles("1"), area, f"lib/tiles.py\n{again}")
    assert isinstance(following, ForkAction)
    assert [inputs["number"] for _, inputs in following.children] == [1, 2]
    assert len(llm.requests) == 4
    assert "..." in shown(llm.requests[0])


async def test_a_missing_function_and_a_whole_file_are_asked_for() -> None:
    trace = "ImportError: cannot import name 'tiles' from 'lib.area' (lib/area.py)\n1 error\n"
    files = {"lib/area.py": CODE, "tests/test_tiles.py": TESTS.replace("lib.tiles", "lib.area")}
    events = [
        task(f"`{CHECK}` fails."),
        *ran(LIST, "lib/area.py\ntests/test_tiles.py\n", 0),
        *ran(CHECK, trace, 1),
        *(event for path, text in files.items() for event in file_read(path, text)),
    ]
    action, first = await step(state_of(*events), "```\ndef tiles(a, b):\n    return a * b * 4\n```")
    _, llm = await step(state_of(*events, *validated(action, trace)), *["no"] * 30)
    assert isinstance(action, ForkAction)
    assert action.children[0][1]["task"] == "add tiles in lib/area.py"
    check_golden("repair_add", shown(first.requests[0]))
    prompts = list(dict.fromkeys(shown(request) for request in llm.requests))
    check_golden("repair_file", next(prompt for prompt in prompts if "whole file" in prompt))
    check_golden("repair_line", next(prompt for prompt in prompts if "One line" in prompt))


async def test_a_constant_that_the_suspected_function_uses_is_a_suspect_too() -> None:
    code = {
        "rates.py": "RATES = {\n    'adult': 12,\n    'child': 50,\n}\n",
        "price.py": "from rates import RATES\n\n\ndef price(kind):\n    return RATES[kind]\n",
    }
    trace = "in test_price\nAssertionError: 50 != 5\nFAILED (failures=1)\n"
    state = state_of(
        task(f"`{CHECK}` fails."),
        *ran(LIST, "price.py\nrates.py\ntests/test_price.py\n", 0),
        *ran(CHECK, trace, 1),
        *file_read(
            "tests/test_price.py", "from price import price\n\n\ndef test_price():\n    assert price('child') == 5\n"
        ),
        *(event for path, text in code.items() for event in file_read(path, text)),
    )
    action, llm = await step(
        state, *["no"] * 9, "```\nRATES = {\n    'adult': 12,\n    'child': 5,\n}\n```", *["no"] * 30
    )
    assert isinstance(action, ForkAction)
    (child,) = action.children
    assert child[1]["task"] == "rewrite RATES in rates.py"
    assert child[1]["edits"] == [{"path": "rates.py", "old": "    'child': 50,\n", "new": "    'child': 5,\n"}]
    assert any("Repair the constant RATES of rates.py" in shown(request) for request in llm.requests)


JAVA = "class Cart {\n    int size() {\n        return n;\n    }\n}\n"
PYTHON = (
    "class Cart:\n    def size(self):\n        return 1\n\n\nclass Order:\n    def total(self):\n        return 2\n"
)
GO = "type Cart struct{}\n\nfunc (c Cart) Size() int {\n\treturn 1\n}\n\ntype Order struct{}\n"
SCRIPT = "class Cart {\n  size() {\n    return 1;\n  }\n}\nmodule.exports = { Cart };\n"


@pytest.mark.parametrize(
    ("path", "text", "trace", "answer", "method"),
    [
        (
            "Cart.java",
            JAVA,
            "  symbol:   method total()\n  location: variable cart of type shop.Cart\n",
            "int total() {\n    return 0;\n}",
            "    int total() {\n        return 0;\n    }\n",
        ),
        (
            "cart.py",
            PYTHON,
            "AttributeError: 'Cart' object has no attribute 'total'",
            "class Cart:\n    def total(self):\n        return 0",
            "    def total(self):\n        return 0\n",
        ),
        (
            "cart.go",
            GO,
            "cart.Total undefined (type Cart has no field or method Total)",
            "func (c Cart) Total() int {\n\treturn 0\n}",
            "func (c Cart) Total() int {\n\treturn 0\n}\n",
        ),
        (
            "cart.js",
            SCRIPT,
            "TypeError: cart.total is not a function",
            "class Cart {\n  total(a) {\n    return 0;\n  }\n}",
            "  total(a) {\n    return 0;\n  }\n",
        ),
    ],
    ids=["java", "python", "go", "javascript"],
)
async def test_a_missing_method_is_added_to_its_class(
    path: str, text: str, trace: str, answer: str, method: str
) -> None:
    state = state_of(
        task(f"`{CHECK}` fails."), *ran(LIST, f"{path}\n", 0), *ran(CHECK, trace, 1), *file_read(path, text)
    )
    action, _ = await step(state, f"```\n{answer}\n```", *["no"] * 30)
    assert isinstance(action, ForkAction)
    edits = [TextEdit.model_validate(edit) for edit in cast("list[JsonValue]", action.children[0][1]["edits"])]
    size = functions(text)[next(name for name in functions(text) if name.lower() == "cart.size")]
    assert applied({path: text}, edits)[path] == replaced(text, size, f"{size.text}\n\n{method}")


def test_the_model_may_name_a_method_without_its_class() -> None:
    files = {"cart.py": f"{PYTHON}\n\ndef half(x):\n    return x / 2\n"}
    project = Project(CHECK, "1 failed", list(files), files)
    names = ["total", "Cart.size", "half", "other"]
    chosen = {"places": [{"act": "rewrite", "path": "cart.py", "name": name} for name in names]}
    places = chosen_places(f"```json\n{json.dumps(chosen)}\n```", project)
    assert [place.name for place in places] == ["Order.total", "Cart.size", "half"]


async def test_a_method_is_repaired_by_a_reply_at_the_margin() -> None:
    text = SCRIPT.replace("size()", "size(a)")
    state = state_of(
        task(f"`{CHECK}` fails."), *ran(LIST, "c.js\n", 0), *ran(CHECK, "size: 1 failed", 1), *file_read("c.js", text)
    )
    action, _ = await step(state, "```\nsize(a) {\n  return a;\n}\n```", *["no"] * 30)
    assert isinstance(action, ForkAction)
    assert action.children[0][1]["edits"] == [{"path": "c.js", "old": "    return 1;\n", "new": "    return a;\n"}]


RUST = """pub fn add(a: i32, b: i32) -> i32 {
    a - b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(2, 3), 5);
    }
}
"""


async def test_a_test_inside_of_the_code_is_none_of_the_code_to_repair() -> None:
    trace = "thread 'tests::adds' panicked at src/lib.rs:11:9:\ntest result: FAILED. 0 passed; 1 failed"
    state = state_of(
        task("`cargo test` fails."),
        *ran(LIST, "Cargo.toml\nsrc/lib.rs\n", 0),
        *ran("cargo test", trace, 1),
        *file_read("Cargo.toml", "[package]\n"),
        *file_read("src/lib.rs", RUST),
    )
    weaker = f"```rust\n{RUST.replace('5', '-1')}```"
    action, _ = await step(state, *[weaker] * 10, f"```rust\n{RUST.replace('a - b', 'a + b')}```")
    assert isinstance(action, ForkAction)
    assert action.children[0][1]["task"] == "rewrite src/lib.rs"
    assert action.children[0][1]["edits"] == [{"path": "src/lib.rs", "old": "    a - b\n", "new": "    a + b\n"}]


@pytest.mark.parametrize(
    ("path", "head", "line", "function"),
    [
        ("a.go", "package a\n", 'import "b"', "func f() int {\n\treturn 0\n}"),
        ("a.php", "<?php\ndeclare(strict_types=1);\nnamespace A;\n", "use B\\c;", "function f() {\n    return 0;\n}"),
        ("a.py", "#!/usr/bin/env python3\n", "import b", "def f():\n    return 0"),
        (
            "a.py",
            '"""Doc."""\n\nfrom __future__ import (\n    annotations,\n)\n',
            "import b",
            "def f():\n    return 0",
        ),
    ],
)
async def test_an_import_follows_the_head_of_its_file(path: str, head: str, line: str, function: str) -> None:
    text = f"{head}\n{function}\n"
    state = state_of(
        task(f"`{CHECK}` fails."),
        *ran(LIST, f"{path}\n", 0),
        *ran(CHECK, f"{path}:5: f is wrong\n1 failed", 1),
        *file_read(path, text),
    )
    changed = function.replace("0", "c()")
    action, _ = await step(state, f"```\n{line}\n\n{changed}\n```", *["no"] * 30)
    assert isinstance(action, ForkAction)
    edits = [TextEdit.model_validate(edit) for edit in cast("list[JsonValue]", action.children[0][1]["edits"])]
    assert applied({path: text}, edits) == {path: f"{head}{line}\n\n{changed}\n"}


async def test_the_model_chooses_among_many_functions() -> None:
    many = "".join(f"def f{n}(x):\n    return x\n\n\n" for n in range(4))
    state = state_of(
        task(f"`{CHECK}` fails."),
        *ran(LIST, "many.py\ntests/test_many.py\n", 0),
        *ran(CHECK, "1 failed\n", 1),
        *file_read("tests/test_many.py", "from many import f0\n"),
        *file_read("many.py", many),
    )
    action, llm = await step(state, "{}")
    assert isinstance(action, AgentThinkAction)
    check_golden("repair_places", shown(llm.requests[0]))
    chosen = {"places": [{"act": "delete", "path": "many.py", "name": "f3"}, {"act": "add", "path": "x", "name": "y"}]}
    events = [reply(json.dumps(chosen)), action]
    answered = [
        task(f"`{CHECK}` fails."),
        *ran(LIST, "many.py\ntests/test_many.py\n", 0),
        *ran(CHECK, "1 failed\n", 1),
        *file_read("tests/test_many.py", "from many import f0\n"),
        *file_read("many.py", many),
        *events,
    ]
    first, _ = await step(state_of(*answered), "```\ndef f0(x):\n    return 0\n```")
    action, _ = await step(state_of(*answered, *validated(first)), *["no"] * 30)
    assert isinstance(action, ForkAction)
    deleted = next(inputs for _, inputs in action.children if inputs["task"] == "delete f3 in many.py")
    assert "def f3" in str(deleted["edits"])


async def test_the_model_chooses_the_files_to_read_in_a_large_project() -> None:
    paths = [f"lib/part{n}.py" for n in range(20)]
    before = [
        task("`sh tests/run.sh` fails."),
        *ran(LIST, "\n".join([*paths, "tests/run.sh"]) + "\n", 0),
        *ran("sh tests/run.sh", "wrong\n", 1),
        *file_read("tests/run.sh", "exit 1\n"),
    ]
    action, llm = await step(state_of(*before), "{}")
    assert isinstance(action, AgentThinkAction)
    check_golden("repair_files", shown(llm.requests[0]))
    chosen = reply(json.dumps({"files": ["lib/part7.py", "lib/other.py"]}))
    (action,), _ = await step(state_of(*before, chosen, action))  # pyright: ignore[reportGeneralTypeIssues]
    assert isinstance(action, FileReadAction)
    assert action.path == "lib/part7.py"


async def test_a_choice_without_an_answer_is_asked_for_once_more_then_the_repair_goes_on() -> None:
    many = "".join(f"def f{n}(x):\n    return x\n\n\n" for n in range(4))
    before = [
        task(f"`{CHECK}` fails."),
        *ran(LIST, "many.py\ntests/test_many.py\n", 0),
        *ran(CHECK, "1 failed\n", 1),
        *file_read("tests/test_many.py", "from many import f0\n"),
        *file_read("many.py", many),
    ]
    silent, llm = await step(state_of(*before), "", "")
    assert isinstance(silent, AgentThinkAction)
    assert len(llm.requests) == 2
    first, _ = await step(state_of(*before, silent), "```\ndef f0(x):\n    return 0\n```")
    assert isinstance(first, ForkAction)


async def test_the_rejection_names_files_that_could_not_be_read() -> None:
    not_text = ErrorObservation(content="lib/area.py is not UTF-8", error_id="not_text")
    state = state_of(
        task(f"`{CHECK}` fails."),
        *ran(LIST, "lib/area.py\ntests/test_area.py\n", 0),
        *ran(CHECK, "1 failed\n", 1),
        *file_read("tests/test_area.py", "from lib.area import area\n"),
        FileReadAction(path="lib/area.py"),
        not_text,
    )
    end, _ = await step(state)
    assert isinstance(end, AgentRejectAction)
    assert "Not read: lib/area.py. Files of more than 4,000 lines are not read" in str(end.outputs["reason"])


@pytest.mark.parametrize(
    ("suffix", "output"),
    [
        ("_test.go", "--- FAIL: TestSum (0.00s)\n    part7_test.go:9: Sum() = 1\nFAIL\tshop/part7\t0.002s\n"),
        ("Test.java", "java.lang.AssertionError\n\tat shop.part7.part7Test.sum(part7Test.java:12)\n"),
        (".test.js", "    at Object.<anonymous> (./part7/part7.test.js:3:5)\n"),
    ],
)
async def test_a_test_that_the_output_names_by_the_end_of_its_path_is_read_first(suffix: str, output: str) -> None:
    paths = [f"shop/part{n}/part{n}{suffix}" for n in range(20)]
    state = state_of(task("`make test` fails."), *ran(LIST, "\n".join(paths) + "\n", 0), *ran("make test", output, 1))
    (action,), _ = await step(state)  # pyright: ignore[reportGeneralTypeIssues]
    assert isinstance(action, FileReadAction)
    assert action.path == paths[7]


async def test_of_a_long_test_file_the_model_sees_what_the_output_names() -> None:
    others = "".join(f"def test_{n}():\n    assert area({n}, 1) == {n}\n\n\n" for n in range(200))
    tests = f"from lib.area import area\n\n\n{others}def test_last():\n    assert area(2, 3) == 6\n"
    state = state_of(
        task(f"`{CHECK}` fails."),
        *ran(LIST, "lib/area.py\ntests/test_area.py\n", 0),
        *ran(CHECK, "tests/test_area.py:9: in test_last\nE   assert 5 == 6\n", 1),
        *file_read("tests/test_area.py", tests),
        *file_read("lib/area.py", CODE),
    )
    _, llm = await step(state, *["no"] * 60)
    prompt = shown(llm.requests[0])
    assert "from lib.area import area\n\n\n\ndef test_last():\n    assert area(2, 3) == 6\n```" in prompt
    assert "test_100" not in prompt


@pytest.mark.parametrize(("status", "content", "seconds"), [("input", "name? ", 1.0), ("running", "", 60.0)])
async def test_a_check_that_does_not_end_is_stopped_and_runs_again_in_a_new_sandbox(
    status: str, content: str, seconds: float
) -> None:
    check, output = ran(CHECK, content, 0)
    unfinished = output.model_copy(update={"status": status, "exit_code": None})
    state = state_of(task(f"`{CHECK}` fails."), *ran(LIST, "a.py\n", 0), check, unfinished)
    following, _ = await step(state)
    assert isinstance(following, CmdRunAction)
    assert (following.command, following.timeout) == ("", seconds)
    state.apply(SessionStarted(agent="RepairAgent", model="m", sandbox="none", resumed=True, id=99))
    following, _ = await step(state)
    assert isinstance(following, CmdRunAction)
    assert following.command == CHECK


def test_a_check_in_a_part_of_the_project_leaves_the_shell_of_its_copy_where_it_is() -> None:
    state = state_of()
    state.inputs = {"task": "rewrite area", "edits": [], "number": 0, "check": "cd shapes && make test"}
    check = ValidationAgent(ScriptedLLM([])).step(state)
    assert isinstance(check, CmdRunAction)
    assert check.command == "(cd shapes && make test\n)"


@pytest.mark.parametrize(("minutes", "timeout"), [(2, None), (9, None), (10, 60.0)])
async def test_slow_tests_run_on_while_they_print(minutes: int, timeout: float | None) -> None:
    check, output = ran(CHECK, "......", 0)
    printed = {"status": "running", "exit_code": None, "timestamp": check.timestamp + timedelta(minutes=minutes)}
    unfinished = output.model_copy(update=printed)
    state = state_of(task(f"`{CHECK}` fails."), *ran(LIST, "a.py\n", 0), check, unfinished)
    following, _ = await step(state)
    assert isinstance(following, CmdRunAction)
    assert (following.command, following.timeout) == ("", timeout)


@pytest.mark.parametrize(("suffix", "is_told"), [("py", True), ("png", False)])
async def test_a_rejection_says_that_programs_may_be_left_out(suffix: str, is_told: bool) -> None:
    others = [f"shop/a_{number}.{suffix}" for number in range(MOST_LISTED - 3)]
    state = failing(files="\n".join([FILES, *others]))
    end, _ = await step(state, *["I do not know."] * 60)
    assert isinstance(end, AgentRejectAction)
    assert ("Only the first 5,000 files of the workspace were looked at." in str(end.outputs["reason"])) == is_told
