"""Each example does what its first line says. The benchmark's tests are in tests/evals/test_example_benchmark.py."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import handiwork
from examples.codenav_on_handiwork import main as run_codenav_on_handiwork
from examples.codenav_on_images import main as run_codenav_on_images
from examples.codenav_on_notes import main as run_codenav_on_notes
from examples.custom_action import PytestAgent, RunTestsAction, RunTestsObservation
from examples.custom_sandbox import small
from examples.custom_tool import CountingAgent
from examples.image_tools.effects import blur_outside, mean_difference
from examples.image_tools.regions import Box, bounding_box, colour_mask, largest_region
from examples.minimal_agent import MinimalAgent
from examples.research_notes.references import faults, passage
from handiwork.agents.codenav.execution import RunCodeAction
from handiwork.agents.codenav.retrieval import RetrieveAction
from handiwork.events.action import CmdRunAction
from handiwork.events.observation import CmdOutputObservation
from handiwork.sandbox.create import SANDBOXES
from handiwork.settings import SettingsError, load
from tests.cli.program import bash, finish

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WEB = EXAMPLES.parent / "web"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("new_user")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "story.txt").write_text("to be or not to be\n")
    return folder


def test_the_agent_runs_what_the_model_writes(project: Path) -> None:
    model = handiwork.ScriptedLLM(["<execute_bash>wc -w < story.txt > words</execute_bash>", "<finish/>"])
    result = handiwork.run("count the words", workspace=project, agent=MinimalAgent, model=model)
    assert (result.outcome, result.state.agent) == ("finished", "MinimalAgent")
    assert result.diff.endswith("+6\n")


def test_the_agent_runs_python_and_talks(project: Path) -> None:
    cell = "I count.\n<execute_ipython>print(len(open('story.txt').read().split()))</execute_ipython>"
    model = handiwork.ScriptedLLM([cell, "There are six. Which file next?"])
    result = handiwork.run("count the words", workspace=project, agent=MinimalAgent, model=model)
    assert result.outcome == "awaiting_user_input"
    said = [message.content[0].text for message in model.requests[-1]]
    assert said[1:3] == ["count the words", cell]
    assert said[3] == "6"


@pytest.mark.browser
def test_the_agent_browses(project: Path) -> None:
    (project / "page.html").write_text("<title>T</title><h1>A headline</h1>")
    page = '<execute_browse>goto("file:///{}/page.html")</execute_browse>'
    seen = handiwork.run("where", workspace=project, agent=MinimalAgent, model=handiwork.ScriptedLLM(["<finish/>"]))
    workspace = seen.state.workspace.lstrip("/")
    model = handiwork.ScriptedLLM([page.format(workspace), "<finish/>"])
    handiwork.run("read page.html", workspace=project, agent=MinimalAgent, model=model)
    assert "A headline" in (model.requests[-1][-1].content[0].text or "")


def test_the_tool_is_called_by_its_name_and_runs_in_the_sandbox(project: Path) -> None:
    called = {"tool_calls": [{"name": "count_words", "arguments": {"path": "story.txt", "at_least": 2}}]}
    model = handiwork.ScriptedLLM([called, finish()])
    result = handiwork.run("count the words", workspace=project, agent=CountingAgent, model=model)
    assert result.outcome == "finished"
    (said,) = [part.text or "" for part in model.requests[-1][-1].content]
    assert '"to": 2' in said or "'to': 2" in said, said
    assert "not" not in said


def test_the_skills_are_in_the_notebook(project: Path) -> None:
    cells = json.dumps({"cells": [{"cell_type": "code", "source": ["a = 1\n", "a"]}]})
    (project / "a.ipynb").write_text(cells)
    code = "show_notebook('a.ipynb')\ncount_lines()"
    called = {"tool_calls": [{"name": "ipython", "arguments": {"code": code}}]}
    model = handiwork.ScriptedLLM([called, finish()])
    skills = [str(EXAMPLES / "custom_skills.py")]
    result = handiwork.run("count the lines", workspace=project, model=model, skills=skills)
    assert result.outcome == "finished"
    (said,) = [part.text or "" for part in model.requests[-1][-1].content]
    assert "'.txt': 1" in said
    assert "== Cell 1, code ==\na = 1\na" in said


def test_the_agent_with_data_goes_on_with_the_next_line_in_another_process(project: Path) -> None:
    task = "echo one >> tally\necho two >> tally\necho three >> tally"
    agent, model = f"{EXAMPLES}/custom_data.py:ScriptAgent", "scripted:/dev/null"
    stopped = handiwork.run(task, workspace=project, agent=agent, model=model, max_iterations=2)
    assert (stopped.outcome, stopped.state.extra_data) == ("paused", {"commands": 2})
    program = Path(sys.executable).with_name("handiwork")
    command = [program, "resume", stopped.session, "--max-iterations", "9", "--json"]
    resumed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    finished = json.loads(resumed.splitlines()[-1])
    assert (finished["type"], finished["outputs"]) == ("AgentFinishAction", {"commands": 3})
    diff = subprocess.run([program, "diff", stopped.session], capture_output=True, text=True, check=True).stdout
    assert diff.endswith("+one\n+two\n+three\n")


def test_the_action_is_a_tool_runs_in_the_sandbox_and_stays_in_the_log(project: Path) -> None:
    asked = {"command": "echo 3 passed, 1 failed in 0.1s"}
    called = {"tool_calls": [{"name": "run_tests", "arguments": asked}]}
    model = handiwork.ScriptedLLM([called, finish()])
    result = handiwork.run("test it", workspace=project, agent=PytestAgent, model=model)
    ((action, observation),) = [seen for seen in result.state.history if isinstance(seen[0], RunTestsAction)]
    assert (action.source, action.command) == ("agent", asked["command"])
    assert isinstance(observation, RunTestsObservation)
    assert (observation.passed, observation.failed, observation.cause) == (3, 1, action.id)
    (said,) = [part.text or "" for part in model.requests[-1][-1].content]
    assert said == "3 passed, 1 failed in 0.1s\n"
    program = [Path(sys.executable).with_name("handiwork"), "show", result.session]
    shown = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert asked["command"] in shown


def test_the_sandbox_is_one_by_its_name_and_has_its_limits(project: Path) -> None:
    assert SANDBOXES["small"].make is small
    assert load({"sandbox": "small"}).sandbox == "small"
    with pytest.raises(SettingsError, match="'none' or 'small'"):
        load({"sandbox": "large"})
    model = handiwork.ScriptedLLM([bash("head -c 2M /dev/zero > zeros"), finish()])
    result = handiwork.run("write zeros", workspace=project, model=model, sandbox="small")
    assert (result.outcome, result.state.sandbox) == ("finished", "small")
    (observation,) = [seen for action, seen in result.state.history if isinstance(action, CmdRunAction)]
    assert isinstance(observation, CmdOutputObservation)
    assert "limit of 1 MiB for one file was reached" in observation.text


@pytest.mark.usefixtures("node_on_path")
@pytest.mark.skipif(not (WEB / "node_modules").exists(), reason="`make setup` has not installed web/node_modules")
def test_the_pane_compiles_and_becomes_a_part_of_the_page(tmp_path: Path) -> None:
    web = tmp_path / "web"
    shutil.copytree(WEB, web, ignore=shutil.ignore_patterns("node_modules", "tests"))
    (web / "node_modules").symlink_to(WEB / "node_modules")
    shutil.copy(EXAMPLES / "custom_pane.tsx", web / "src/panes/Hosts.tsx")
    for command in (["tsc", "--noEmit"], ["vite", "build", "--outDir", "built"]):
        program = web / "node_modules/.bin" / command[0]
        done = subprocess.run([program, *command[1:]], cwd=web, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((web / "built/assets").glob("Hosts-*.js"))) == 1


@pytest.mark.parametrize(("replies", "code"), [([bash("echo 2b > story.txt"), finish()], 0), ([], 1)])
def test_the_command_stands_beside_the_others(
    project: Path, tmp_path: Path, replies: list[dict[str, object]], code: int
) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    program = [sys.executable, EXAMPLES / "custom_command.py"]
    listed = subprocess.run([*program, "--help"], capture_output=True, text=True, check=True).stdout
    assert "repair" in listed
    assert "apply" in listed
    done = subprocess.run(
        [*program, "repair", "grep 2b story.txt", "--model", f"scripted:{script}"],
        cwd=project, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert done.stdout.endswith("+2b\n" if replies else "")
    assert bool(done.stdout) == bool(replies)


@pytest.mark.slow
def test_codenav_runs_an_agent_of_the_codebase_that_it_searches() -> None:
    result = run_codenav_on_handiwork()
    assert result.outcome == "finished", result.state.last_error
    assert result.diff == ""
    responses = [o.content for a, o in result.state.history if isinstance(a, RetrieveAction | RunCodeAction) and o]
    _, found_run, found_model, failed, found_settings, ran, table = responses
    assert "file_path=handiwork/session/run.py" in found_run
    assert "class ScriptedLLM:" in found_model
    assert "TypeError: run() has no setting folder" in failed
    assert "file_path=handiwork/settings.py" in found_settings
    assert "result = RunResult(session=" in ran
    rows = table.partition("\n\n")[0].splitlines()
    assert rows == [
        "STDOUT:",
        "RetrieveAction     I look for the tax.",
        "RunCodeAction      I compute it.",
        "AgentFinishAction  The tax on 250 is 47.5.",
        "The tax on 250 is 47.5.",
    ]
    assert str(result.state.outputs["code_summary"]).startswith("import handiwork")


def test_codenav_edits_a_photograph_with_the_image_tools_that_it_finds() -> None:
    result = run_codenav_on_images()
    assert result.outcome == "finished", result.state.last_error
    assert result.diff.startswith("Binary file flag.png is added: none -> ")
    assert result.diff.count("\n") == 1
    responses = [o.content for a, o in result.state.history if isinstance(a, RetrieveAction | RunCodeAction) and o]
    found, too_large, stripe, found_blur, compared = responses
    assert "def largest_region(mask: Mask)" in found
    assert "def bounding_box(mask: Mask)" in found
    assert "(600, 512, 3) (53, 16, 375, 406)\n" in too_large
    assert "(600, 512, 3) (55, 277, 132, 370)\n" in stripe
    assert "def blur_outside(" in found_blur + found
    difference = re.search(r"inside 0\.00\noverall (\d+\.\d\d)\n", compared)
    assert difference is not None
    assert 10 < float(difference[1]) < 20


def test_the_image_tools_find_regions_and_blur_what_is_outside_of_a_box() -> None:
    picture = np.zeros((40, 60, 3), np.uint8)
    picture[5:10, 5:20, 0] = 200
    picture[30:32, 50:52, 0] = 255
    picture[20:30, 20:40] = 255
    assert bounding_box(largest_region(colour_mask(picture, 0))) == Box(5, 5, 20, 10)
    with pytest.raises(ValueError, match="the mask has no pixel"):
        largest_region(colour_mask(picture, 1))
    blurred = blur_outside(picture, Box(5, 5, 20, 10))
    assert (blurred[5:10, 5:20] == picture[5:10, 5:20]).all()
    assert 0 < blurred[19, 30, 0] < 255
    assert mean_difference(blurred, picture) > mean_difference(picture, picture) == 0


def test_codenav_answers_from_documents_with_references_that_are_right() -> None:
    result = run_codenav_on_notes()
    assert result.outcome == "finished", result.state.last_error
    assert result.diff == ""
    responses = [o.content for a, o in result.state.history if isinstance(a, RetrieveAction | RunCodeAction) and o]
    found, computed, wrong_place, right = responses
    assert "file_path=bm25.tex\nlines=[1, 16]\ntype=DOCUMENTATION" in found
    assert "file_path=recall.md\nlines=[1, 9]\ntype=DOCUMENTATION" in found
    assert computed.startswith("STDOUT:\n1.96\n")
    assert "[bm25.tex:12-12] has not the words" in wrong_place
    assert right.startswith("STDOUT:\n[]\n")
    answer = str(result.state.outputs["message"])
    assert "1.96" in answer
    assert answer.count("[") == 3
    assert faults(answer) == []


def test_the_faults_of_references_are_found() -> None:
    assert passage("[recall.md:1-3]") == "# Measuring a search ## Recall at a depth"
    assert faults('Recall "counts the same" [recall.md:5-7].') == [
        '[recall.md:5-7] has not the words "counts the same"'
    ]
    assert faults('"one right\ndocument" [recall.md:6-6] and "no place"') == [
        '"no place": nothing is no reference: write it like [recall.md:3-4]'
    ]
    assert faults("Nothing.") == ["the answer quotes nothing"]
    for reference, message in (
        ("[none.md:1-2]", "there is no note none.md"),
        ("[recall.md:5-900]", "has the lines 1 to"),
    ):
        with pytest.raises(ValueError, match=message):
            passage(reference)
