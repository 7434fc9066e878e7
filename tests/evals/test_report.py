"""Reports of real trajectories: what they say, that they stand alone, and that no text in them becomes markup."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handiwork.evals.reporting import report, trajectory
from handiwork.evals.reporting.compare import compare
from handiwork.evals.reporting.summary import Summary, summarise
from handiwork.evals.running.results import Result
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    FileEditAction,
    IPythonRunCellAction,
    MessageAction,
)
from handiwork.events.base import Event
from handiwork.events.codec import to_json
from handiwork.events.observation import (
    AgentDelegateObservation,
    AgentStateChangedObservation,
    BrowserOutputObservation,
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    IPythonRunCellObservation,
)
from handiwork.events.record import CompletionEvent, LoopEvent, SessionStarted, StepStarted
from handiwork.sandbox.bundle import chromium_outside

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)> <!-- | `x` \x1b[31mred\x1b[0m \u202e"
)

RUN: dict[str, Any] = {
    "benchmark": "humanevalfix",
    "split": "python",
    "agent": "CodeActAgent",
    "model": "scripted",
    "metric": "pass@1",
    "instances": 3,
    "trials": 1,
    "limits": {"iterations": 50, "cost": None},
    "commit": "0442b52",
    "skipped": {"Python/9": "needs a compiler"},
}


def repaired(said: str = "It adds now.") -> list[Event]:
    """A session that looks, is not understood once, edits and finishes."""
    return [
        SessionStarted(agent="CodeActAgent", model="scripted", sandbox="none"),
        MessageAction(content="Repair add().", source="user"),
        StepStarted(),
        CompletionEvent(
            model="m", response={"content": "", "tool_calls": [], "thinking": [{"content": "First look."}]}
        ),
        CmdRunAction(command="cat add.py", thought="I look.", completion=4),
        CmdOutputObservation(command="cat add.py", content="return a - b\n", exit_code=0).with_fields(cause=5),
        StepStarted(),
        CompletionEvent(model="m", response={"content": "a + b, of course", "tool_calls": [], "thinking": []}),
        ErrorObservation(content="There is no action in it.", error_id="malformed").with_fields(cause=8),
        StepStarted(),
        FileEditAction(path="add.py", old="a - b", new="a + b"),
        FileEditObservation(path="add.py", content="-a - b\n+a + b\n").with_fields(cause=11),
        CmdRunAction(command="pytest"),
        CmdOutputObservation(command="pytest", content="1 failed\n", exit_code=1).with_fields(cause=13),
        StepStarted(),
        AgentFinishAction(outputs={"message": said}),
    ]


def kept(folder: Path, name: str, events: Sequence[Event]) -> str:
    """Write a trajectory as a run does; returns its path in the run's folder."""
    (folder / "trajectories").mkdir(exist_ok=True)
    lines = [to_json(event.with_fields(id=number)) for number, event in enumerate(events, 1)]
    (folder / "trajectories" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return f"trajectories/{name}.jsonl"


def results(folder: Path, text: str = "It adds now.") -> list[Result]:
    path = kept(folder, "one", repaired(text))
    return [
        Result(id="Python/10", outcome="submitted", score=0.0, answer=text, group=text, cost=0.02, trajectory=path),
        Result(id="Python/2", outcome="submitted", score=1.0, cost=0.01, trajectory=path, steps=4, seconds=2),
        Result(id="Python/3", outcome="sandbox", why=text),
    ]


def written(folder: Path, found: list[Result], **run: Any) -> Summary:
    summary = summarise({**RUN, **run}, found, {})
    report.write(folder, summary, found)
    return summary


class Page(HTMLParser):
    """What a browser would find in a page: its elements, and the JSON of its trajectories."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data: list[dict[str, Any]] = []
        self._in_data = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_data = dict(attrs).get("type") == "application/json"

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data.append(json.loads(data))
            self._in_data = False


def page(folder: Path, name: str = "report") -> Page:
    return Page((folder / f"{name}.html").read_text())


def test_the_first_line_says_the_score_with_its_interval(tmp_path: Path) -> None:
    written(tmp_path, results(tmp_path))
    text = (tmp_path / "report.md").read_text()
    assert text.startswith(
        "# humanevalfix python: pass@1 50.0 % (95 % interval 9.5 to 90.5 %), 2 of 3 instances measured\n\n"
    )
    assert "| sandbox (not the agent's) | 1 | 33.3 % |  |" in text
    assert "| needs a compiler | 1 | Python/9 |" in text
    assert "| model | scripted |" in text
    assert "| limits | iterations 50 |" in text


def test_a_mean_score_is_no_percentage(tmp_path: Path) -> None:
    found = [Result(id=one, outcome="submitted", score=score) for one, score in (("a", 0.25), ("b", 0.75))]
    written(tmp_path, found, metric="mean score", instances=2)
    assert "mean score 0.500 (95 % interval 0.250 to 0.750)" in (tmp_path / "report.md").read_text()


def test_the_json_is_the_summary(tmp_path: Path) -> None:
    summary = written(tmp_path, results(tmp_path))
    assert Summary.model_validate_json((tmp_path / "report.json").read_bytes()) == summary


def test_a_run_without_any_result_has_a_report_too(tmp_path: Path) -> None:
    written(tmp_path, [])
    assert (tmp_path / "report.md").read_text().startswith("# humanevalfix python: no score, 0 of 3 instances measured")
    assert page(tmp_path).data == []


def test_a_trajectory_tells_thought_action_and_observation_of_every_step(tmp_path: Path) -> None:
    moments = trajectory.read(tmp_path / kept(tmp_path, "one", repaired()))
    told = [(m["step"], m["who"], m["kind"], m["does"], m["sees"], m["note"], m["bad"]) for m in moments]
    edit = "add.py\n--- old\na - b\n--- new\na + b"
    assert told == [
        (0, "user", "say", "Repair add().", "", "", False),
        (1, "agent", "run", "cat add.py", "return a - b\n", "", False),
        (2, "agent", "a reply that was not understood", "a + b, of course", "There is no action in it.", "", True),
        (3, "agent", "edit", edit, "-a - b\n+a + b\n", "", False),
        (3, "agent", "run", "pytest", "1 failed\n", "exit 1", True),
        (4, "agent", "finish", "It adds now.", "", "", False),
    ]
    assert moments[1]["thought"] == "First look.\n\nI look."


def test_a_subtask_and_what_the_session_says_of_itself_have_their_place(tmp_path: Path) -> None:
    events: list[Event] = [
        AgentDelegateAction(agent="CodeActAgent", inputs={"task": "port the lexer"}),
        IPythonRunCellAction(code="1/0").with_fields(subtask=1),
        IPythonRunCellObservation(code="1/0", content="Traceback", error="ZeroDivisionError").with_fields(
            cause=2, subtask=1
        ),
        AgentDelegateObservation(agent="CodeActAgent", content="ported").with_fields(cause=1),
        LoopEvent(first=1, rule="repeat", times=3, content="the same three times"),
        AgentStateChangedObservation(agent_state="paused", reason="stuck", content="it does not get on"),
        AgentStateChangedObservation(agent_state="running", reason="user"),
    ]
    moments = trajectory.read(tmp_path / kept(tmp_path, "sub", events))
    assert [(m["subtask"], m["kind"], m["does"], m["sees"], m["note"]) for m in moments] == [
        (0, "delegate to CodeActAgent", "port the lexer", "ported", ""),
        (1, "run in the notebook", "1/0", "Traceback", "ZeroDivisionError"),
        (0, "", "", "", "it repeats itself: the same three times"),
        (0, "", "", "", "paused: it does not get on"),
    ]


def test_what_was_done_in_the_browser_is_told_by_its_calls_and_where_they_led(tmp_path: Path) -> None:
    events: list[Event] = [
        BrowseURLAction(url="http://a/"),
        BrowserOutputObservation(url="http://a/", content="[1] link 'B'").with_fields(cause=1),
        BrowseInteractiveAction(browser_actions="click('2')"),
        BrowserOutputObservation(url="http://a/", content="[1] link 'B'", last_action_error="no 2").with_fields(
            cause=3
        ),
    ]
    moments = trajectory.read(tmp_path / kept(tmp_path, "web", events))
    assert [(m["kind"], m["does"], m["sees"], m["note"], m["bad"]) for m in moments] == [
        ("browse", "http://a/", "[1] link 'B'", "http://a/", False),
        ("act in the browser", "click('2')", "[1] link 'B'", "http://a/; no 2", True),
    ]


def test_a_line_that_is_no_event_does_not_hide_the_others(tmp_path: Path) -> None:
    file = tmp_path / kept(tmp_path, "one", repaired())
    file.write_text(file.read_text()[:-20])
    moments = trajectory.read(file)
    assert [m["kind"] for m in moments][-2:] == ["run", ""]
    assert moments[-1]["note"] == "line 16 of the trajectory is no event"


def test_a_huge_output_loses_its_middle(tmp_path: Path) -> None:
    output = CmdOutputObservation(command="x", content="a" * 300_000 + "z" * 300_000, exit_code=0)
    moments = trajectory.read(
        tmp_path / kept(tmp_path, "big", [CmdRunAction(command="x"), output.with_fields(cause=1)])
    )
    seen = moments[0]["sees"]
    assert len(seen) < trajectory.MOST + 100
    assert (seen[0], seen[-1]) == ("a", "z")
    assert "580000 characters are left out" in seen


def test_colours_are_left_out_and_unseen_characters_seen() -> None:
    assert trajectory.harmless("\x1b[1;31mred\x1b[0m\r\nab\u202ecd\x07") == "red\nab\ufffdcd\ufffd"


def test_the_page_stands_alone_and_has_every_rollout(tmp_path: Path) -> None:
    written(tmp_path, results(tmp_path))
    found = page(tmp_path)
    assert not [tag for tag, values in found.tags if tag in ("link", "iframe", "img") or values.get("src")]
    links = [values["href"] for tag, values in found.tags if tag == "a" and values.get("href")]
    assert all(link is not None and link.startswith("#") for link in links)
    assert [one["name"] for one in found.data] == ["Python/2", "Python/3", "Python/10"]
    assert [len(one["moments"]) for one in found.data] == [6, 0, 6]


def test_a_wrong_answer_stands_beside_the_expected_one(tmp_path: Path) -> None:
    wrong = [
        Result(id="1", outcome="submitted", score=0.0, answer="42", details={"truth": 43}),
        Result(id="2", outcome="submitted", score=0.0, answer="A", details={"truth": "B"}),
        Result(id="3", outcome="submitted", score=0.0, answer="x", details={"output": "no single one"}),
    ]
    written(tmp_path, wrong)
    assert [(one["answer"], one["expected"]) for one in page(tmp_path).data] == [("42", "43"), ("A", "B"), ("x", "")]


def test_hostile_text_is_text_in_every_form(tmp_path: Path) -> None:
    written(tmp_path, results(tmp_path, HOSTILE), model=HOSTILE, benchmark=HOSTILE, skipped={HOSTILE: HOSTILE})
    found = page(tmp_path)
    assert not [tag for tag, values in found.tags if tag == "img" or any(name.startswith("on") for name in values)]
    scripts = [values for tag, values in found.tags if tag == "script"]
    assert [values.get("type") for values in scripts] == ["application/json"] * 3 + [None]
    assert HOSTILE.split()[0] in found.data[2]["answer"]
    for line in (tmp_path / "report.md").read_text().splitlines():
        assert not re.search(r"(?<!\\)<", line)
        assert len(re.findall(r"(?<!\\)\|", line)) in (0, 3, 4, 5)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.sampled_from("<>/!-&\"'scriptSCRIPT{}% \n\\u003c"), max_size=60))
def test_no_answer_breaks_out_of_the_page(tmp_path: Path, text: str) -> None:
    written(tmp_path, [Result(id=f"x{text}", outcome="submitted", score=1.0, answer=text, group=text)])
    found = page(tmp_path)
    assert found.data[0]["answer"] == text
    assert [tag for tag, _ in found.tags].count("script") == 2


def test_a_run_with_known_costs_has_a_picture_of_its_quarters(tmp_path: Path) -> None:
    found = [Result(id=str(n), outcome="submitted", score=float(n < 8), cost=n / 100) for n in range(16)]
    written(tmp_path, found, instances=16)
    picture = ET.parse(tmp_path / "report.svg").getroot()
    titles = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == [
        "cheapest quarter: 100.0 % for $0.015 a rollout",
        "second: 100.0 % for $0.055 a rollout",
        "third: 0.0 % for $0.095 a rollout",
        "dearest quarter: 0.0 % for $0.135 a rollout",
    ]
    assert "![Score by cost](report.svg)" in (tmp_path / "report.md").read_text()


def test_costs_that_tell_nothing_are_not_drawn(tmp_path: Path) -> None:
    free = [Result(id=str(n), outcome="submitted", score=1.0) for n in range(16)]
    unknown = [one.model_copy(update={"cost": float(one.id), "unpriced": 1}) for one in free]
    for found in (free, unknown):
        (tmp_path / "report.svg").write_text("of a report before")
        written(tmp_path, found, instances=16)
        assert not (tmp_path / "report.svg").exists()
        assert "svg" not in (tmp_path / "report.md").read_text()


def test_unknown_prices_are_said(tmp_path: Path) -> None:
    written(tmp_path, [Result(id="a", outcome="submitted", score=1.0, unpriced=7)])
    assert "The price of 7 completions is not known" in (tmp_path / "report.md").read_text()


def test_missing_trials_of_measured_instances_are_said(tmp_path: Path) -> None:
    written(
        tmp_path, [Result(id="a", outcome="submitted", score=1.0), Result(id="a", trial=2, outcome="model")], trials=3
    )
    assert "The measured instances have the scores of 1 of their 3 trials." in (tmp_path / "report.md").read_text()


def test_a_comparison_says_difference_and_flips_and_draws_a_point_for_each_run(tmp_path: Path) -> None:
    first, second = (
        [
            Result(id=str(n), outcome="submitted", score=float(n < right), cost=cost, group="odd" if n % 2 else "even")
            for n in range(8)
        ]
        for right, cost in ((3, 0.01), (7, 0.04))
    )
    before, after = (summarise({**RUN, "instances": 8}, found, {}) for found in (first, second))
    report.write_comparison(tmp_path, compare(first, second), before, after)
    text = (tmp_path / "comparison.md").read_text()
    assert text.startswith(
        "# Difference +50.0 points (95 % interval +12.5 to +87.5 points), McNemar's exact p = 0.125, on"
    )
    assert "## Better: 4" in text
    assert "| 6 | 0.0 % | 100.0 % |" in text
    assert "| group | instances | before | after | difference | 95 % interval |" in text
    assert "| even | 4 | 50.0 % | 100.0 % | +50.0 points | +0.0 to +100.0 points |" in text
    assert "| odd | 4 | 25.0 % | 75.0 % | +50.0 points | +0.0 to +100.0 points |" in text
    assert "One of several trials" not in text
    picture = (tmp_path / "comparison.svg").read_text()
    assert re.findall("<title>(.*?)</title>", picture) == [
        "before: 37.5 % for $0.01 a rollout",
        "after: 87.5 % for $0.04 a rollout",
    ]
    assert "Difference +50.0 points" in (tmp_path / "comparison.html").read_text()


def test_a_comparison_with_several_trials_has_the_score_of_the_chosen_one(tmp_path: Path) -> None:
    first = [
        Result(id="a", outcome="submitted", trial=trial, score=score, calls=1, details={"check": bool(score)})
        for trial, score in ((1, 0.0), (2, 1.0), (3, 0.0))
    ]
    second = [Result(id="a", outcome="submitted", score=1.0, calls=2)]
    before, after = (summarise({**RUN, "trials": 3}, found, {}) for found in (first, second))
    report.write_comparison(tmp_path, compare(first, second), before, after)
    text = (tmp_path / "comparison.md").read_text()
    assert "after: The measured instances have the scores of 1 of their 3 trials." in text
    assert "## One of several trials" in text
    chosen = "| the first that passes the visible check, within the other run's model calls "
    assert f"{chosen}| 1 | 100.0 % | 100.0 % | +0.0 points | none: all alike |" in text


def shown(file: Path, place: str = "") -> str:
    """The page's elements as Chromium has made them."""
    command = [
        chromium_outside(file.parent),
        "--no-sandbox",
        "--headless",
        "--disable-gpu",
        "--dump-dom",
        f"file://{file}{place}",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout


@pytest.mark.slow
@pytest.mark.browser
class TestInABrowser:
    def test_a_rollout_is_read_step_by_step_and_its_text_is_no_markup(self, tmp_path: Path) -> None:
        written(tmp_path, results(tmp_path, HOSTILE))
        found = shown(tmp_path / "report.html", "#rollout-2")
        assert "Step 4: agent: finish" in found
        assert "First look.\n\nI look." in found
        assert "&lt;img src=x onerror=alert(1)&gt;" in found
        assert "<title>owned</title>" not in found
        assert 'id="overview" hidden' in found

    def test_the_expected_answer_is_below_a_wrong_one(self, tmp_path: Path) -> None:
        wrong = Result(id="1", outcome="submitted", score=0.0, answer="42", details={"truth": 43})
        written(tmp_path, [wrong])
        facts = re.search('<dl id="facts".*?</dl>', shown(tmp_path / "report.html", "#rollout-0"), re.DOTALL)
        assert facts is not None
        assert "answer 42 expected answer 43 " in " ".join(re.sub("<[^>]*>", " ", facts[0]).split())

    def test_the_table_is_filtered(self, tmp_path: Path) -> None:
        """A script is put in that types; the policy, which would not let it run, is taken out."""
        written(tmp_path, results(tmp_path))
        text = (tmp_path / "report.html").read_text()
        types = "<script>byId('search').value = 'WRONG'; filter();</script></body>"
        (tmp_path / "guarded.html").write_text(text.replace("</body>", types))
        assert "3 of 3" in shown(tmp_path / "guarded.html")
        (tmp_path / "typed.html").write_text(re.sub("<meta http-equiv.*", "", text).replace("</body>", types))
        found = shown(tmp_path / "typed.html")
        assert "1 of 3" in found
        assert len(re.findall("<tr [^>]*hidden", found)) == 2

    def test_a_long_output_is_folded(self, tmp_path: Path) -> None:
        lines = "".join(f"line {number}\n" for number in range(200))
        ran = [
            CmdRunAction(command="x"),
            CmdOutputObservation(command="x", content=lines, exit_code=0).with_fields(cause=1),
        ]
        written(tmp_path, [Result(id="a", outcome="limit", score=0.0, trajectory=kept(tmp_path, "a", ran))])
        assert "<summary>186 more lines, 1587 characters</summary><pre>line 14\n" in shown(
            tmp_path / "report.html", "#rollout-0"
        )
