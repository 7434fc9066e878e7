"""The web app's files, as the server gives them."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from handiwork.server.app import web_app


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    app = tmp_path / "app"
    (app / "assets").mkdir(parents=True)
    (app / "index.html").write_text("<title>Handiwork</title>")
    (app / "assets" / "index-abc.js").write_text("run()")
    (tmp_path / "secret").write_text("not for you")
    return TestClient(Starlette(routes=[web_app(app)]))


@pytest.mark.parametrize("path", ["/", "/welcome", "/s/abc123?pane=files"])
def test_every_page_is_the_same_document(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.text == "<title>Handiwork</title>"
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-cache"


def test_scripts_come_from_the_server_alone_and_are_kept_by_the_browser(client: TestClient) -> None:
    assert "script-src 'self';" in client.get("/").headers["content-security-policy"]
    script = client.get("/assets/index-abc.js")
    assert script.text == "run()"
    assert "javascript" in script.headers["content-type"]
    assert "immutable" in script.headers["cache-control"]


@pytest.mark.parametrize(
    "path", ["/assets/gone.js", "/api/nothing", "/assets/../../secret", "/assets/%2e%2e/%2e%2e/secret"]
)
def test_nothing_else_is_served(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert "not for you" not in answer.text
    assert answer.status_code == 404 or answer.text == "<title>Handiwork</title>"


def test_an_app_that_was_not_built_is_said(tmp_path: Path) -> None:
    answer = TestClient(Starlette(routes=[web_app(tmp_path / "nowhere")])).get("/")
    assert "make setup" in answer.text
