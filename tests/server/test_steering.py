"""Whole sessions over HTTP and WebSocket: steered, killed, forked, and shared with the commands."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from scripts.harness.serving import PATIENCE, Api, Program, bash, events_until, finish, next_event, next_of, until
from tests.cli.program import Terminal

pytestmark = pytest.mark.slow


def asked(api: Api, session: str) -> dict[str, str]:
    """Return what the session asks about, once it does."""
    (found,) = api.until(session, "awaiting_user_confirmation")["asked"]
    return found


def test_a_reply_and_an_output_are_seen_as_they_come_and_say_so(api: Api) -> None:
    session = api.create(
        bash("echo first; sleep 0.5; echo second", said="Let me\nsee.", delay=0.5), finish(), task="show it"
    )
    transient: list[dict[str, str]] = []
    with api.follow(f"{session}/follow") as socket:
        while (message := next_of(socket)).get("type") != "AgentFinishAction":
            transient += [message] if "transient" in message else []
    said = {kind: "".join(one["text"] for one in transient if one["transient"] == kind) for kind in ("text", "output")}
    assert said["text"].startswith("Let me\n")
    assert "first" in said["output"]


def test_a_session_goes_on_when_it_is_told_and_sees_the_picture(api: Api) -> None:
    session = api.create(bash("cd /tmp && export WORD=kept"), finish("One."), bash("pwd; echo $WORD"), finish("Two."))
    api.until(session, "finished")
    picture = api.http.post("/api/blobs", content=b"\xff\xd8\xff picture").json()
    image = {"blob": picture["blob"], "media_type": "image/jpeg"}
    event = api.post(f"{session}/messages", content="and now?", images=[image])["event"]
    until(lambda: api.get(session)["outputs"] == {"message": "Two."})
    message, *rest = api.events(session, after=event - 1)
    assert message["images"] == [{"text": None, **image}]
    (output,) = [one for one in rest if one["type"] == "CmdOutputObservation"]
    assert output["content"] == "/tmp\nkept\n", "the shell is the same one"


def test_what_is_asked_is_approved_rejected_or_remembered(api: Api) -> None:
    session = api.create(
        bash("touch a"), bash("touch b"), bash("rm greeting.txt"), finish(), confirmation="always", task="touch"
    )
    first = asked(api, session)
    assert first["rule"] == "command touch *"
    assert first["why"] == "You are asked about every action that does more than read."
    answer = {"action": first["action"]["id"], "allowed": True, "remember": True}
    api.post(f"{session}/approvals", **answer)
    rm = until(lambda: (found := asked(api, session))["action"]["command"] == "rm greeting.txt" and found)
    assert api.http.post(f"{session}/approvals", json=answer).status_code == 409, "it is answered"
    api.post(f"{session}/approvals", action=rm["action"]["id"], allowed=False, comment="I need it")
    view = api.until(session, "finished")
    assert view["rules"] == ["command touch *"]
    assert [entry["name"] for entry in api.get(f"{session}/files")["entries"]] == ["a", "b", "greeting.txt"]
    (rejected,) = [event for event in api.events(session) if event["type"] == "UserRejectObservation"]
    assert rejected["content"] == "I need it"


def test_an_interrupt_stops_what_runs_and_resume_goes_on(api: Api) -> None:
    session = api.create(bash("sleep 1000"), finish())
    until(lambda: "CmdRunAction" in api.types(session))
    assert api.post(f"{session}/interrupt")["state"] == "paused"
    until(lambda: "CmdOutputObservation" in api.types(session) or "ErrorObservation" in api.types(session))
    assert api.get(session)["state"] == "paused"
    api.post(f"{session}/resume")
    api.until(session, "finished")
    assert api.http.post(f"{session}/resume").status_code == 409


def test_a_stopped_session_is_nobody_s_and_a_message_has_it_go_on(api: Api) -> None:
    session = api.create(bash("sleep 1000"), finish())
    until(lambda: "CmdRunAction" in api.types(session))
    api.post(f"{session}/stop")
    until(lambda: api.get(session)["run_by"] is None)
    assert api.get("/api/sessions", state="stopped")["sessions"][0]["id"] == api.get(session)["id"]
    api.post(f"{session}/messages", content="no, finish it")
    api.until(session, "finished")


def test_a_limit_and_a_model_are_changed(api: Api) -> None:
    session = api.create(bash("echo 1"), bash("echo 2"), finish(), limits={"iterations": 1})
    assert api.until(session, "paused")["reason"] == "limit"
    other = api.script(finish("unused"), finish("The other one."))
    view = api.post(f"{session}/settings", model=other, limits={"iterations": 9})
    assert (view["model"], view["limits"]["iterations"]) == (other, 9)
    view = api.post(f"{session}/settings", limits={"cost": 5})
    assert (view["limits"]["iterations"], view["limits"]["cost"]) == (9, 5)
    api.post(f"{session}/resume")
    assert api.until(session, "finished")["outputs"] == {"message": "The other one."}
    assert api.http.post(f"{session}/settings", json={"model": "scripted:/nowhere"}).status_code == 422


def test_files_go_in_and_come_out_and_are_seen_as_they_were(api: Api) -> None:
    session = api.create(
        bash("mkdir d && echo 1 > d/x"), bash("echo 2 > d/x; rm greeting.txt; ln -s /etc/passwd link"), finish()
    )
    api.until(session, "finished")
    data = bytes(range(256)) * 4096
    put = api.http.put(f"{session}/files/content", params={"path": "in/data.bin"}, content=data)
    assert put.json() == {"path": "in/data.bin", "size": len(data)}
    got = api.http.get(f"{session}/files/content", params={"path": "in/data.bin", "download": "true"})
    assert got.content == data
    assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''data.bin"
    names = {entry["name"]: entry["kind"] for entry in api.get(f"{session}/files")["entries"]}
    assert names == {"d": "dir", "in": "dir", "link": "link"}

    first = next(event["id"] for event in api.events(session) if event["type"] == "CmdOutputObservation")
    then = {entry["name"] for entry in api.get(f"{session}/files", at=first)["entries"]}
    assert then == {"d", "greeting.txt"}
    assert api.http.get(f"{session}/files/content", params={"path": "d/x", "at": first}).text == "1\n"
    assert api.http.get(f"{session}/files/content", params={"path": "d/x"}).text == "2\n"

    for path in ("../secret", "/etc/passwd", "d/../../x", "d//x"):
        for method in ("GET", "PUT"):
            assert api.http.request(method, f"{session}/files/content", params={"path": path}).status_code == 422
    for path, status in (("link", 409), ("d", 409), ("nothing", 404), ("d/x/y", 404)):
        assert api.http.get(f"{session}/files/content", params={"path": path}).status_code == status


def test_a_folder_is_listed_whatever_the_bytes_of_its_names(api: Api) -> None:
    session = api.create(bash("touch latin1-$'\\xe9'.txt"), finish())
    api.until(session, "finished")
    made = next(event["id"] for event in api.events(session) if event["type"] == "CmdOutputObservation")
    for listing in (api.get(f"{session}/files"), api.get(f"{session}/files", at=made)):
        assert [entry["name"] for entry in listing["entries"]] == ["greeting.txt", "latin1-?.txt"]


def test_a_hunk_is_taken_back_once_and_the_file_keeps_its_mode(api: Api) -> None:
    session = api.create(bash("chmod +x greeting.txt; sed -i s/hello/bye/ greeting.txt; touch new"), finish())
    api.until(session, "finished")
    patch = api.get(f"{session}/diff")["patch"]
    hunk = patch[patch.index("@@ -") : patch.index("diff --git", 1)]
    taken = api.http.post(f"{session}/diff/reject", json={"path": "greeting.txt", "hunk": hunk})
    assert taken.json() == {"path": "greeting.txt", "size": 6}
    changes = {change["path"]: change["kind"] for change in api.get(f"{session}/diff")["files"]}
    assert changes == {"greeting.txt": "mode", "new": "added"}
    for path in ("greeting.txt", "new", "nothing"):
        refused = api.http.post(f"{session}/diff/reject", json={"path": path, "hunk": hunk})
        assert refused.status_code == 409, refused.text
        assert path in refused.json()["error"]


def test_a_new_deleted_or_replaced_file_is_taken_back_as_a_whole(api: Api, tmp_path: Path) -> None:
    project = tmp_path / "files"
    (project / "d").mkdir(parents=True)
    (project / "d" / "tool.sh").write_text("true\n")
    (project / "d" / "tool.sh").chmod(0o755)
    (project / "link").symlink_to("d/tool.sh")
    (project / "plain").write_text("as it was\n")
    change = "mkdir -p new; echo x > 'new/-a b'; rm -r d link; echo 1 > link; rm plain; ln -s / plain"
    session = api.create(bash(change), finish(), workspace=str(project))
    api.until(session, "finished")
    kinds = {change["path"]: change["kind"] for change in api.get(f"{session}/diff")["files"]}
    assert set(kinds) == {"new/-a b", "d/tool.sh", "link", "plain"}
    for path in kinds:
        taken = api.http.post(f"{session}/diff/reject", json={"path": path, "hunk": None})
        assert taken.status_code == 200, (path, taken.text)
    assert api.get(f"{session}/diff")["files"] == []
    assert api.http.post(f"{session}/diff/reject", json={"path": "plain", "hunk": None}).status_code == 409


def test_changes_are_shown_by_step_by_turn_and_in_all(api: Api) -> None:
    session = api.create(bash("echo 1 > a"), bash("echo 2 > b"), finish(), bash("echo 3 > c"), finish("More."))
    api.until(session, "finished")
    api.post(f"{session}/messages", content="more")
    until(lambda: api.get(session)["outputs"] == {"message": "More."})
    commands = [event["id"] for event in api.events(session) if event["type"] == "CmdRunAction"]

    def changed(**query: object) -> list[str]:
        return [file["path"] for file in api.get(f"{session}/diff", **query)["files"]]

    assert changed() == ["a", "b", "c"]
    assert [changed(of="step", event=event) for event in commands] == [["a"], ["b"], ["c"]]
    assert [changed(of="turn", event=event) for event in commands] == [["a", "b"], ["a", "b"], ["c"]]
    assert changed(first=commands[1], last=commands[2]) == ["b"]


def test_a_fork_goes_on_from_then_with_another_message(api: Api) -> None:
    session = api.create(bash("echo 1 > a"), bash("echo 2 > b"), finish())
    api.until(session, "finished")
    first = next(event["id"] for event in api.events(session) if event["type"] == "CmdOutputObservation")
    other = api.script(finish("unused"), bash("echo 3 > c"), finish("Differently."))
    made = api.post(f"{session}/fork", at=first, model=other, message="do it otherwise")
    fork = f"/api/sessions/{made['id']}"
    assert api.until(fork, "finished")["outputs"] == {"message": "Differently."}
    assert [file["path"] for file in api.get(f"{fork}/diff")["files"]] == ["a", "c"]
    assert [file["path"] for file in api.get(f"{session}/diff")["files"]] == ["a", "b"]
    tree = api.get(f"{fork}/tree")["sessions"]
    assert [(row["id"], row["parent_event"]) for row in tree] == [(session.rpartition("/")[2], 0), (made["id"], first)]
    assert api.http.delete(session).status_code == 409, "the fork reads its events"
    assert api.http.delete(fork).status_code == 200
    assert api.http.delete(session).status_code == 200


def test_a_fork_without_a_message_is_paused_until_it_is_resumed(api: Api) -> None:
    session = api.create(bash("echo 1 > a"), finish("unused"), finish("The same way."))
    api.until(session, "finished")
    first = next(event["id"] for event in api.events(session) if event["type"] == "CmdOutputObservation")
    made = api.post(f"{session}/fork", at=first)
    fork = f"/api/sessions/{made['id']}"
    assert made["state"] == api.get(fork)["state"] == "paused"
    rows = {row["id"]: row["state"] for row in api.get("/api/sessions")["sessions"]}
    assert rows[made["id"]] == "paused"
    api.post(f"{fork}/resume")
    assert api.until(fork, "finished")["outputs"]["message"]


def test_twenty_sessions_run_side_by_side(api: Api) -> None:
    script = [bash(f"sleep 0.2; echo {number} > n{number}") for number in range(3)]

    def one(number: int) -> list[int]:
        session = api.create(*script, finish(), task=f"number {number}")
        with api.follow(f"{session}/follow") as socket:
            return [event["id"] for event in events_until(socket, "AgentFinishAction")]

    with ThreadPoolExecutor(20) as pool:
        for ids in pool.map(one, range(20)):
            assert ids == list(range(1, len(ids) + 1))


def test_who_follows_loses_and_repeats_nothing_when_the_server_is_killed(program: Program) -> None:
    api = program.start()
    session = api.create(*(bash(f"sleep 0.1; echo {number} >> log") for number in range(20)), finish())
    seen: list[int] = []
    ended = threading.Event()

    def follow() -> None:
        while not ended.is_set():
            try:
                with api.follow(f"{session}/follow?after={seen[-1] if seen else 0}") as socket:
                    while not ended.is_set():
                        message = next_event(socket)
                        seen.append(message["id"])
                        if message["type"] == "AgentFinishAction":
                            ended.set()
            except (OSError, EOFError, ConnectionClosed):
                time.sleep(0.05)

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        for number in (15, 50):
            until(lambda number=number: len(seen) > number, "events")
            program.kill()
            program.start()
        assert ended.wait(PATIENCE)
    finally:
        ended.set()
        follower.join(PATIENCE)
    assert seen == list(range(1, len(seen) + 1))
    assert api.until(session, "finished")
    done = api.http.get(f"{session}/files/content", params={"path": "log"}).text.split()
    assert len(done) == len(set(done)), "nothing is done twice"
    assert len(done) >= 18, "nothing is left out but what ran when it was killed"


def test_commands_steer_a_session_of_the_server(program: Program) -> None:
    api = program.start()
    session = api.create(bash("touch a"), finish("First."), bash("touch b"), finish("Second."), confirmation="always")
    asked(api, session)
    assert program.run("approve").returncode == 0
    api.until(session, "finished")
    resumed = program.run("resume", "--message", "once more", "--json")
    assert resumed.returncode == 1, resumed.stderr
    events = [json.loads(line) for line in resumed.stdout.splitlines()]
    assert events[0]["content"] == "once more"
    assert events[-1]["agent_state"] == "awaiting_user_confirmation"
    assert asked(api, session)["action"]["command"] == "touch b"
    assert program.run("approve", "--reject", "--comment", "no more").returncode == 0
    assert api.until(session, "finished")["outputs"] == {"message": "Second."}
    assert "no more" in program.run("show").stdout


def test_a_host_is_allowed_only_by_who_knows_of_the_commands_at_work(program: Program) -> None:
    api = program.start()
    job = {"tool_calls": [{"name": "bash", "arguments": {"command": "sleep 1000", "background": True}}]}
    session = api.create(job, bash("touch b"), finish(), confirmation="always")
    api.post(f"{session}/approvals", action=asked(api, session)["action"]["id"], allowed=True)
    until(lambda: "touch b" in str(asked(api, session)))
    refused = api.http.post(f"{session}/network", json={"hosts": ["example.org"]})
    assert refused.status_code == 409
    assert "sleep 1000" in refused.json()["error"]
    command = program.run("allow", "example.org")
    assert command.returncode == 2
    assert "job1: sleep 1000" in command.stderr
    resumed = program.run("resume", "--allow-net", "example.org")
    assert resumed.returncode == 2
    assert "handiwork allow" in resumed.stderr
    assert "NetworkAllowed" not in api.types(session)
    assert program.run("allow", "pypi", "--yes").returncode == 0
    api.post(f"{session}/network", hosts=["example.org"], confirmed=True)
    allowed = [event["hosts"] for event in api.events(session) if event["type"] == "NetworkAllowed"]
    assert allowed == [["pypi"], ["example.org"]]


def test_the_server_steers_a_session_of_a_command(program: Program) -> None:
    api = program.start()
    model = api.script(bash("sleep 1000"), finish())
    command = subprocess.Popen(
        [*program.command("run", "wait", "--model", model, "--json")],
        cwd=api.workspace,
        env=program.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    row = until(lambda: next(iter(api.get("/api/sessions")["sessions"]), None))
    session = f"/api/sessions/{row['id']}"
    with api.follow(f"{session}/follow") as socket:
        events_until(socket, "CmdRunAction")
        assert api.get(session)["run_by"]["here"] is False
        upload = api.http.put(f"{session}/files/content", params={"path": "x"}, content=b"x")
        assert upload.status_code == 409, "its files are another process's to change"
        api.post(f"{session}/interrupt")
        out, _ = command.communicate(timeout=PATIENCE)
        assert command.returncode == 130
        assert "CmdRunAction" in out
        api.post(f"{session}/messages", content="then finish")
        events_until(socket, "AgentFinishAction")


def test_a_server_that_is_told_to_end_hands_its_sessions_over(program: Program) -> None:
    api = program.start()
    session = api.create(bash("sleep 2; echo 1 > a"), bash("echo 2 > b"), finish())
    until(lambda: "CmdRunAction" in api.types(session))
    program.end()
    api = program.start()
    api.until(session, "finished")
    assert "b" in {entry["name"] for entry in api.get(f"{session}/files")["entries"]}


def test_commits_are_brought_from_a_session_that_waits_in_the_server(program: Program) -> None:
    api = program.start()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=api.workspace, check=True)
    session = api.create(
        bash("git add -A && git commit -q -m 'A commit'"), finish(), bash("git log --format=%s"), finish()
    )
    api.until(session, "finished")
    assert api.get(session)["run_by"]["here"] is True
    applied = program.run("apply")
    assert f"commits are on branch handiwork/{api.get(session)['id']}" in applied.stderr, applied.stderr
    api.post(f"{session}/messages", content="what is there?")
    until(lambda: "A commit\n" in [event.get("content") for event in api.events(session)])


def test_a_question_in_the_terminal_ends_when_it_is_answered_in_the_browser(program: Program) -> None:
    api = program.start()
    model = api.script(bash("touch a"), finish("Touched."))
    command = program.command("run", "touch it", "--model", model, "--confirm", "always")
    with Terminal(command, api.workspace, program.environment) as terminal:
        terminal.until("allow?")
        (row,) = api.get("/api/sessions")["sessions"]
        session = f"/api/sessions/{row['id']}"
        api.post(f"{session}/approvals", action=asked(api, session)["action"]["id"], allowed=True)
        terminal.until("Touched.")
        assert terminal.exit_code() == 0
