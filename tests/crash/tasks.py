"""Tasks that are killed while they run: in bubblewrap, in place, with subtasks, with questions."""

from __future__ import annotations

import os

from handiwork.events.action import CmdRunAction
from handiwork.events.record import ApprovalEvent
from tests.crash.agents import ASKER, PLANNER
from tests.crash.bench import FINISH, Bench, bash, folded, handiwork, lines_of, newest, run_task, say, sessions, wait
from tests.crash.checks import Told, check_commands, check_counts, check_events, close_all, finish_all

STEPS = (
    bash("echo one >> tally; mkdir -p deep/er; seq 20000 > deep/er/large", content="a\nb\n", delay=0.02),
    bash("echo two >> tally; seq 20000"),
    bash("echo three >> tally; rm first.txt; (sleep 1000 &)"),
    bash("echo four >> tally"),
)


def prepare_run(bench: Bench) -> None:
    bench.empty()
    bench.script(*STEPS, FINISH)


def work_run(bench: Bench) -> int:
    return run_task(bench, "--json")


def recover_run(bench: Bench, told: Told) -> None:
    known = wait(sessions(bench.data))
    assert known or not told
    finish_all(bench, "--max-iterations", "90", begun=False)
    for info in known:
        events, _ = check_events(bench.data, info.id, told)
        check_commands(events, lines_of(bench, info.id, "tally"))
    assert (bench.project / "first.txt").exists(), "the user's own file is gone"
    assert not (bench.project / "tally").exists(), "the user's own directory was written to"
    if not told:
        assert run_task(bench, "--json") == 0


def prepare_resume(bench: Bench) -> None:
    prepare_run(bench)
    assert run_task(bench, "--json", "--max-iterations", "2") == 3


def work_resume(bench: Bench) -> int:
    return handiwork("resume", "--message", "go on", "--max-iterations", "90", "--json")


def prepare_in_place(bench: Bench) -> None:
    bench.empty()
    bench.script(*STEPS, FINISH)


def work_in_place(bench: Bench) -> int:
    return run_task(bench, "--in-place", "--json")


def recover_in_place(bench: Bench, told: Told) -> None:
    finish_all(bench, begun=False)
    assert handiwork("gc") == 0  # a session killed after its last step has nothing to resume
    names = {path.name for path in bench.project.iterdir()}
    assert names <= {"README", "first.txt", "second.txt", "tally", "deep"}, f"made in the user's directory: {names}"
    place = bench.project / "tally"
    for info in wait(sessions(bench.data)):
        events, _ = check_events(bench.data, info.id, told)
        check_commands(events, place.read_text().split() if place.exists() else [])
    assert {path.stat().st_uid for path in bench.project.rglob("*")} == {os.getuid()}


def prepare_delegate(bench: Bench) -> None:
    bench.empty()
    bench.script(*({"content": "reply", "delay": 0.002} for _ in range(60)))


def work_delegate(bench: Bench, agent: str = PLANNER, *flags: str) -> int:
    model = ("--model", f"scripted:{bench.here}/script.jsonl", "--agent", agent, "--sandbox", "none")
    task = str(bench.here / "tally")
    return handiwork("run", task, "--workspace", str(bench.project), *model, "--json", *flags)


def tally(bench: Bench) -> list[str]:
    place = bench.here / "tally"
    return place.read_text().split() if place.exists() else []


def recover_delegate(bench: Bench, told: Told) -> None:
    for info in wait(sessions(bench.data)):
        check_counts(check_events(bench.data, info.id, told)[0])
    finish_all(bench, begun=False)
    for info in wait(sessions(bench.data)):
        events, state = check_events(bench.data, info.id, told)
        check_counts(events)
        assert (state.pending, state.subtasks) == ([], {})
        check_commands(events, tally(bench))
        wait(close_all(bench))
        assert not list((bench.data / "sessions" / info.id / "children").glob("*")), "children's copies are left"


def prepare_approval(bench: Bench) -> None:
    prepare_delegate(bench)
    assert work_delegate(bench, ASKER, "--confirm", "always") == 1


def work_approval(bench: Bench) -> int:
    """Answer all questions until the session is finished: no to every third."""
    for number in range(1, 100):
        state = folded(check_events(bench.data, newest(bench), [])[0])
        if state.agent_state == "finished":
            return 0
        if asked := sorted(state.totals.asked):
            flags = ("--reject", "--comment", "no") if number % 3 == 0 else ()
            if handiwork("approve", *flags) != 0:
                return 1
            say(answered=asked, allowed=number % 3 > 0)
        handiwork("resume", "--json")
    return 1


def recover_approval(bench: Bench, told: Told) -> None:
    session = newest(bench)
    events, state = check_events(bench.data, session, told)
    answers = {number: one["allowed"] for one in told if "answered" in one for number in one["answered"]}
    stored = {event.action: event.allowed for event in events if isinstance(event, ApprovalEvent)}
    assert answers.items() <= stored.items(), f"answers are lost: {answers} of {stored}"
    asked = set(state.totals.asked)
    handiwork("resume", "--json")
    _, state = check_events(bench.data, session, told)
    assert asked <= set(state.totals.asked), f"{asked} was asked, and {set(state.totals.asked)} is now"
    assert work_approval(bench) == 0
    events, _ = check_events(bench.data, session, told)
    check_counts(events)
    check_commands(events, tally(bench))
    allowed = {event.action for event in events if isinstance(event, ApprovalEvent) and event.allowed}
    for event in events:
        if isinstance(event, CmdRunAction) and event.id not in allowed:
            assert event.command.split()[1] not in tally(bench), f"{event.command} ran without a yes"
