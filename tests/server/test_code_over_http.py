"""The code of a session's workspace is searched over HTTP, as it is now, without running or following anything."""

from __future__ import annotations

from pathlib import Path

from scripts.harness.serving import Api, bash, finish

CHANGE = "printf 'def planted(net): pass\\n' >> tax.py; ln -s {secret} link.py; ln -s /etc all"


def test_the_files_as_they_are_now_are_searched(api: Api, tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("def secret_of_the_user(): pass\n")
    project = tmp_path / "project"
    project.mkdir()
    (project / "tax.py").write_text("RATE = 0.19\n\n\ndef tax(net):\n    return net * RATE\n")
    change = CHANGE.format(secret=tmp_path / "secret.py")
    session = api.create(bash(change), finish(), workspace=str(project))
    api.until(session, "finished")

    tax = {"path": "tax.py", "first": 4, "last": 5, "type": "FUNCTION", "name": "tax", "text": "def tax(net)"}
    found = api.get(f"{session}/code", query="type: FUNCTION AND net")
    assert (found["total"], found["extended"]) == (2, False)
    assert tax in found["matches"]
    assert {match["name"] for match in found["matches"]} == {"tax", "planted"}
    assert api.get(f"{session}/code", query="secret_of_the_user") == {"total": 0, "extended": False, "matches": []}
    assert "planted" not in (project / "tax.py").read_text()


def test_a_broken_query_is_refused_with_its_fault(api: Api) -> None:
    session = api.create(finish())
    api.until(session, "finished")
    broken = api.http.get(f"{session}/code", params={"query": "name: ("})
    assert broken.status_code == 422
    assert "cannot be read at character" in broken.json()["error"]
    assert api.http.get(f"{session}/code", params={"query": ""}).status_code == 422
    assert api.http.get("/api/sessions/0123abcd/code", params={"query": "tax"}).status_code == 404
