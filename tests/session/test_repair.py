"""RepairAgent in real sandboxes: a scripted model, real checks, and the files as they are in the end."""

from __future__ import annotations

import asyncio
import json
import shutil

import pytest

from handiwork.events.action import (
    ChangeAgentStateAction,
    CmdRunAction,
    FileEditAction,
)
from handiwork.events.observation import ForkObservation
from handiwork.events.record import ApprovalEvent, CompletionEvent, SettingsChanged
from tests.session.workshop import Workshop, unittest_of

pytestmark = pytest.mark.slow

PYTHON = "python3 -m unittest"


def code(text: str) -> str:
    """A reply of one block of code."""
    return f"Here it is:\n```\n{text}\n```\nThat should help."


def line(old: str, new: str) -> str:
    """A reply that replaces a line."""
    return json.dumps({"line": old, "new": new})


AREA = {
    "area.py": "def half(x):\n    return x / 2\n\n\ndef area(a, b):\n    return a + b\n",
    "test_area.py": unittest_of("from area import area", area="assertEqual(area(2, 3), 6)"),
}


def multiplied(text: str) -> str:
    return text.replace("a + b", "a * b")


async def test_a_wrong_function_is_repaired_by_the_candidate_that_passes(workshop: Workshop) -> None:
    workshop.write(AREA)
    replies = [
        code("def area(a, b):\n    return a - b"),
        code("def area(a, b):\n    return a * b"),
        code("def half(x):\n    return x"),
        line("return a + b", "return b"),
        code("def half(x):\n    return 1"),
    ]
    state = await workshop.repair(f"`{PYTHON}` fails.", *replies)
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"area.py": multiplied(AREA["area.py"])}
    assert f"`{PYTHON}` succeeds now" in str(state.outputs["message"])
    assert "write area in area.py anew" in str(state.outputs["message"])
    assert state.outputs["files"] == f"\narea.py:\n```\n{multiplied(AREA['area.py']).rstrip()}\n```"
    forks = [o for _, o in state.history if isinstance(o, ForkObservation)]
    assert [[child.outputs["exit_code"] for child in fork.outcomes] for fork in forks] == [[1], [0, 1, 1, 1]]


async def test_a_first_candidate_that_passes_is_the_only_one_that_the_model_is_asked_for(workshop: Workshop) -> None:
    workshop.write(AREA)
    state = await workshop.repair(f"`{PYTHON}` fails.", code("def area(a, b):\n    return a * b"))
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"area.py": multiplied(AREA["area.py"])}
    assert len(workshop.llm.requests) == 1


async def test_a_check_that_passes_is_left_alone(workshop: Workshop) -> None:
    workshop.write({**AREA, "area.py": multiplied(AREA["area.py"])})
    state = await workshop.repair(f"`{PYTHON}` fails.")
    assert (state.agent_state, workshop.changed()) == ("finished", {})
    assert "succeeds already" in str(state.outputs["message"])


async def test_a_bug_two_files_deep_is_found_by_the_imports(workshop: Workshop) -> None:
    files = {
        "shop/__init__.py": "",
        "shop/total.py": "from shop.tax import tax\n\n\ndef total(price):\n    return price + tax(price)\n",
        "shop/tax.py": "def tax(price):\n    return price // 100\n",
        "tests/test_total.py": unittest_of("from shop.total import total", total="assertEqual(total(200), 220)"),
    }
    workshop.write(files)
    replies = [
        code("def total(price):\n    return price"),
        code("def total(price):\n    return tax(price)"),
        "I do not know.",
        *["I do not know."] * 2,
        code("def tax(price):\n    return price // 10"),
        line("return price + tax(price)", "return 0"),
        code("def tax(price):\n    return 1"),
    ]
    state = await workshop.repair("total() gives too little.", *replies)
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"shop/tax.py": files["shop/tax.py"].replace("100", "10")}


async def test_a_missing_function_is_added(workshop: Workshop) -> None:
    files = {
        "area.py": 'def area(a, b):\n    return a * b\n\n\nif __name__ == "__main__":\n    print(area(2, 3))\n',
        "test_area.py": unittest_of("from area import area, root", root="assertEqual(root(area(2, 8)), 4)"),
    }
    workshop.write(files)
    added = code("import math\n\n\ndef root(x):\n    return math.isqrt(x)")
    state = await workshop.repair(f"`{PYTHON}` fails.", added)
    assert state.agent_state == "finished", state.last_error or state.outputs
    head, tail = files["area.py"].split("\n\n\nif")
    expected = f"import math\n{head}\n\n\ndef root(x):\n    return math.isqrt(x)\n\n\nif{tail}"
    assert workshop.changed() == {"area.py": expected}


async def test_two_files_are_repaired_in_one_candidate(workshop: Workshop) -> None:
    files = {
        "first.py": "def first(items):\n    return items[1]\n",
        "last.py": "def last(items):\n    return items[0]\n",
        "test_ends.py": unittest_of(
            "from first import first\nfrom last import last", ends='assertEqual(first("abc") + last("abc"), "ac")'
        ),
    }
    workshop.write(files)
    together = (
        "first.py\n```\ndef first(items):\n    return items[0]\n```\n"
        "last.py\n```\ndef last(items):\n    return items[-1]\n```\n"
        "test_ends.py\n```\ndef test_ends():\n    pass\n```\n"
    )
    replies = [code("def last(items):\n    return 1"), code("def last(items):\n    return 2"), together]
    others = [code("def first(items):\n    return 3"), line("return items[0]", "return 4")]
    state = await workshop.repair(f"`{PYTHON}` fails.", *replies, *others)
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {
        "first.py": files["first.py"].replace("1", "0"),
        "last.py": files["last.py"].replace("0", "-1"),
    }


async def test_a_shell_script_is_repaired_and_keeps_its_mode(workshop: Workshop) -> None:
    files = {
        "lib.sh": "shout() {\n    echo $1 | tr A-Z a-z\n}\n",
        "test.sh": '. ./lib.sh\n[ "$(shout "a b")" = "A B" ] || { echo "1 failed"; exit 1; }\n',
    }
    workshop.write(files)
    (workshop.project / "lib.sh").chmod(0o755)
    replies = [
        code('shout() {\n    echo "$1"\n}'),
        code('shout() {\n    echo "$1" | tr a-z A-Z\n}'),
        line("echo $1 | tr A-Z a-z", "false"),
        code("shout() {\n    true\n}"),
        code("shout() {\n    false\n}"),
    ]
    state = await workshop.repair("The tests fail.", *replies)
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"lib.sh": 'shout() {\n    echo "$1" | tr a-z A-Z\n}\n'}


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
async def test_a_function_that_a_javascript_module_lacks_comes_with_the_whole_file(workshop: Workshop) -> None:
    files = {
        "area.js": "function area(a, b) {\n  return a * b;\n}\n\nmodule.exports = { area };\n",
        "area.test.js": 'const { root } = require("./area");\nif (root(16) !== 4) throw new Error("wrong root");\n',
    }
    workshop.write(files)
    root = "function root(x) {\n  return Math.sqrt(x);\n}"
    whole = f"function area(a, b) {{\n  return a * b;\n}}\n\n{root}\n\nmodule.exports = {{ area, root }};"
    replies = [code(root), *["I do not know."] * 9, code(whole), *["I do not know."] * 3]
    state = await workshop.repair("`node area.test.js` fails.", *replies)
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"area.js": f"{whole}\n"}


async def test_a_check_in_a_part_of_the_project_leaves_the_shell_where_it_is(workshop: Workshop) -> None:
    workshop.write({f"shapes/{path}": text for path, text in AREA.items()})
    check = f"cd shapes && {PYTHON}"
    state = await workshop.repair(f"`{check}` fails.", code("def area(a, b):\n    return a * b"))
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"shapes/area.py": multiplied(AREA["area.py"])}
    assert f"`{check}` succeeds now" in str(state.outputs["message"])


async def test_the_projects_own_runner_is_the_check(workshop: Workshop) -> None:
    workshop.write({**AREA, "Makefile": f"build:\n\ttrue\n\ntest: build\n\t@{PYTHON}\n"})
    state = await workshop.repair("Something is wrong.", code("def area(a, b):\n    return a * b"))
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert "`make test` succeeds now" in str(state.outputs["message"])


async def test_without_a_check_nothing_is_tried(workshop: Workshop) -> None:
    workshop.write({"area.py": AREA["area.py"]})
    state = await workshop.repair("`area` is wrong, and so is `rm -rf .`; do not `make clean`.")
    assert (state.agent_state, workshop.changed()) == ("rejected", {})
    assert "There is no check" in str(state.outputs["reason"])
    assert not workshop.llm.requests


@pytest.mark.parametrize("in_place", [False, True], ids=["forks", "in turn"])
async def test_what_cannot_be_repaired_is_as_it_was_and_the_rejection_says_so(
    workshop: Workshop, in_place: bool
) -> None:
    files = {"area.py": AREA["area.py"].replace("\n", "\r\n"), "test_area.py": AREA["test_area.py"]}
    workshop.write(files)
    wrong = [
        *(code(f"def area(a, b):\n    return {number}") for number in range(2)),
        code("def half(x):\n    return x"),
    ]
    state = await workshop.delegate(*wrong, in_place=in_place, check=PYTHON, rounds=2, candidates=2)
    reason = str(state.outputs["reason"])
    assert state.outputs["outcome"] == "rejected"
    assert reason.startswith(f"`{PYTHON}` still fails (exit code 1, 1 failed) after 3 candidates")
    assert "Nothing was kept: all files are as they were." in reason
    if in_place:
        assert {path: (workshop.project / path).read_bytes().decode() for path in files} == files
        assert any(isinstance(event, FileEditAction) for event in workshop.events)
    else:
        assert workshop.changed() == {}


@pytest.mark.parametrize("in_place", [False, True], ids=["forks", "in turn"])
async def test_what_helps_is_kept_and_the_next_round_goes_on_from_it(workshop: Workshop, in_place: bool) -> None:
    files = {
        "ends.py": "def first(items):\n    return items[1]\n\n\ndef last(items):\n    return items[0]\n",
        "test_ends.py": unittest_of(
            "from ends import first, last", a='assertEqual(first("ab"), "a")', b='assertEqual(last("ab"), "b")'
        ),
    }
    workshop.write(files)
    first_round = [code("def last(items):\n    return None")]
    second_round = [code("def last(items):\n    return items[-1]"), code("def first(items):\n    return 3")]
    third_round = [code("def first(items):\n    return 1"), code("def first(items):\n    return 2")]
    replies = [*first_round, *second_round, *third_round]
    state = await workshop.delegate(*replies, in_place=in_place, check=PYTHON, rounds=3, candidates=2)
    reason = str(state.outputs["reason"])
    assert "still fails (exit code 1, 1 failed) after 5 candidates" in reason
    assert "Changed ends.py: write last in ends.py anew (then: exit code 1, 1 failed)." in reason
    repaired = files["ends.py"].replace("items[0]", "items[-1]")
    assert (
        (workshop.project / "ends.py").read_text() == repaired
        if in_place
        else workshop.changed() == {"ends.py": repaired}
    )


@pytest.mark.parametrize("in_place", [False, True], ids=["forks", "in turn"])
async def test_a_file_that_cannot_be_edited_ends_in_a_rejection(workshop: Workshop, in_place: bool) -> None:
    workshop.write(AREA)
    (workshop.project / "area.py").chmod(0o444)
    right = [code("def area(a, b):\n    return a * b"), code("def area(a, b):\n    return b * a")]
    other = code("def half(x):\n    return x")
    state = await workshop.delegate(*right, other, in_place=in_place, check=PYTHON, rounds=2, candidates=2)
    assert state.outputs["outcome"] == "rejected", state.outputs
    assert "Nothing was kept" in str(state.outputs["reason"])
    assert (workshop.project / "area.py").read_text() == AREA["area.py"]


async def test_an_action_that_the_user_refuses_ends_the_repair(workshop: Workshop) -> None:
    workshop.write(AREA)
    session = await workshop.open()
    log = await workshop.store.log(session.id)
    await log.append(SettingsChanged(confirmation="always", source="user"))
    state = await session.run(f"`{PYTHON}` fails.")
    (asked,) = state.totals.asked
    await log.append(ApprovalEvent(action=asked, allowed=False, comment="No.", source="user"))
    state = await session.run()
    assert (state.agent_state, workshop.changed()) == ("rejected", {})
    assert "not allowed" in str(state.outputs["reason"])


async def test_a_project_of_many_files_with_a_long_one(workshop: Workshop) -> None:
    """The list of files and the file itself are too long for one observation."""
    long = "".join(f"def other_{number}(x):\n    return x + {number}\n\n\n" for number in range(400))
    others = {f"data/a_folder_with_a_rather_long_name/file_{number}.txt": "" for number in range(600)}
    files = {"area.py": long + AREA["area.py"], "test_area.py": AREA["test_area.py"]}
    workshop.write({**others, **files})
    chosen = json.dumps({"places": [{"act": "rewrite", "path": "area.py", "name": "area"}]})
    replies = [chosen, code("def area(a, b):\n    return a * b"), *["I do not know."] * 60]
    state = await workshop.repair(f"`{PYTHON}` fails.", *replies)
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert workshop.changed() == {"area.py": multiplied(files["area.py"])}


async def test_inputs_are_typed(workshop: Workshop) -> None:
    workshop.write(AREA)
    state = await workshop.delegate(check=PYTHON, candidates=0, temperature="hot")
    problem = str(state.outputs["message"])
    assert "candidates" in problem
    assert "temperature" in problem


@pytest.mark.parametrize(
    ("how", "in_place"),
    [
        ("killed", False),
        ("paused", False),
        ("killed", True),
        ("paused", True),
    ],
)
async def test_an_interrupt_in_the_middle_of_a_round_loses_no_candidate(
    workshop: Workshop, how: str, in_place: bool
) -> None:
    workshop.write(AREA)
    replies = [
        code("def area(a, b):\n    return b"),
        code("import time\n\n\ndef area(a, b):\n    time.sleep(2)\n    return a"),
        code("def half(x):\n    return x"),
        line("return a + b", "return a * b"),
        code("def half(x):\n    return 1"),
    ]
    session = await workshop.open(*replies, in_place=in_place)
    running = asyncio.create_task(session.run(f"`{PYTHON}` fails."))
    edits = 3 if in_place else 2  # the first candidate's, with in_place back again, and the second's
    await workshop.until(FileEditAction, child=not in_place, times=edits)
    checks = 4 if in_place else 2  # with in_place the list of files and the first check; the two candidates'
    await workshop.until(CmdRunAction, child=not in_place, times=checks)
    if how == "paused":
        log = await workshop.store.log(session.id)
        await log.append(ChangeAgentStateAction(agent_state="paused", source="user"))
        assert (await running).agent_state == "paused"
    else:
        running.cancel()
        await asyncio.wait([running])
    await session.close()
    state = await workshop.resume()
    assert state.agent_state == "finished", state.last_error or state.outputs
    assert len({event.id for event in workshop.events if isinstance(event, CompletionEvent)}) == len(replies)
    if in_place:
        assert (workshop.project / "area.py").read_text() == multiplied(AREA["area.py"])
    else:
        assert workshop.changed() == {"area.py": multiplied(AREA["area.py"])}
