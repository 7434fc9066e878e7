"""Where new sessions begin, and what their settings are when a request leaves some out."""

from __future__ import annotations

from pathlib import Path

import httpx2

from scripts.harness.serving import Api, finish


def listed(api: Api, path: str) -> httpx2.Response:
    return api.http.get("/api/folders", params={"path": path})


def test_folders_are_listed_with_their_repositories(api: Api, tmp_path: Path) -> None:
    (tmp_path / "b/.git").mkdir(parents=True)
    (tmp_path / "a").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "gone").symlink_to("/nowhere")
    (tmp_path / b"\xff".decode(errors="surrogateescape")).mkdir()
    listing = listed(api, str(tmp_path)).json()
    assert listing == {
        "path": str(tmp_path),
        "parent": str(tmp_path.parent),
        "repository": False,
        "folders": [{"name": "a", "repository": False}, {"name": "b", "repository": True}],
    }
    assert listed(api, "").json()["path"] == str(Path.home().resolve())
    assert listed(api, "/").json()["parent"] is None
    assert listed(api, "relative").status_code == 422
    assert listed(api, str(tmp_path / "none")).status_code == 404
    assert listed(api, str(tmp_path / "file")).status_code == 409


def test_an_address_that_is_no_repository_is_refused(api: Api) -> None:
    refused = api.http.post("/api/clones", json={"url": "file:///etc"})
    assert refused.status_code == 422
    assert "https://HOST" in refused.json()["error"]


def test_limits_that_are_left_out_are_those_of_the_settings(api: Api) -> None:
    settings = Path(api.get("/api/settings")["file"])
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("max_iterations = 7\nmax_tokens = 9000\n")
    try:
        session = api.create(finish(), limits={"cost": 2.5, "tokens": None}, plan_mode=True)
        api.until(session, "awaiting_user_input")
        view = api.get(session)
    finally:
        settings.unlink()
    assert view["limits"] == {"iterations": 7, "cost": 2.5, "tokens": None, "time": None}
    assert view["plan_mode"]
    api.post(f"{session}/plan/accept", comment="Be quick.")
    assert api.http.post(f"{session}/plan/accept", json={}).status_code == 409
    assert [e["content"] for e in api.events(session) if e["type"] == "MessageAction"][-1].endswith("out. Be quick.")


def test_permissions_are_kept_and_taken_back(api: Api) -> None:
    session = api.create(finish(), allow_net=["example.org"])
    api.until(session, "finished")
    kept = {"text": "example.org", "in_force": True, "kept": True}
    assert api.post(f"{session}/permissions/keep", hosts=["example.org"])["hosts"] == [kept]
    assert api.http.post(f"{session}/permissions/keep", json={"rules": ["command rm *"]}).status_code == 409
    assert api.post(f"{session}/permissions/revoke", hosts=["example.org"]) == {"rules": [], "hosts": []}
    assert api.get(session)["network"] == []
    api.post(f"{session}/network", hosts=["pypi"], scope="project")
    assert [row["kept"] for row in api.get(f"{session}/permissions")["hosts"]] == [True]
    api.post(f"{session}/permissions/revoke", hosts=["pypi"])
