"""Foreign pages, other hosts, missing tokens, too much, and paths that lead out: all are refused."""

from __future__ import annotations

import http.client
from pathlib import Path

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from handiwork.server.serve import bind, serve, token_of
from handiwork.settings import SettingsError
from scripts.harness.serving import TOKEN, Api


def status(api: Api, path: str = "/api/sessions", method: str = "GET", **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return api.bare.request(method, path, headers=named).status_code


BEARER = f"Bearer {TOKEN}"


def test_without_the_token_nothing_is_told_but_health(api: Api) -> None:
    assert status(api) == 401
    assert status(api, "/") == 401
    assert status(api, "/metrics") == 401
    assert status(api, "/api/openapi.json") == 401
    assert status(api, "/health") == 200


@pytest.mark.parametrize(
    "given", ["Bearer wrong", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer"]
)
def test_a_wrong_token_is_none(api: Api, given: str) -> None:
    assert status(api, authorization=given) == 401


def test_a_browser_without_the_token_gets_a_page_that_says_what_to_open(api: Api) -> None:
    answer = api.bare.get("/s/1", headers={"accept": "text/html,*/*"})
    assert (answer.status_code, answer.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "handiwork serve" in answer.text
    answer = api.bare.get("/api/sessions", headers={"accept": "text/html,*/*"})
    assert (answer.status_code, list(answer.json())) == (401, ["error"])


def test_a_token_that_is_no_text_is_none(api: Api) -> None:
    connection = http.client.HTTPConnection(api.url.removeprefix("http://"))
    connection.putrequest("GET", "/api/sessions")
    connection.putheader("authorization", b"Bearer \xff\xfe")
    connection.endheaders()
    assert connection.getresponse().status == 401
    connection.close()


def test_the_link_gives_a_cookie_and_takes_the_token_out_of_the_address(api: Api) -> None:
    with httpx2.Client(base_url=api.url) as browser:
        answer = browser.get("/sessions/1", params={"token": TOKEN, "pane": "files"})
        assert answer.status_code == 303
        assert answer.headers["location"] == "/sessions/1?pane=files"
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert browser.get("/api/sessions").status_code == 200
        carried = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
        with connect(api.url.replace("http", "ws") + "/api/follow", additional_headers=carried):
            pass


@pytest.mark.parametrize("others", ['prefs={"theme":"dark"}', "user=J\xfcrgen M", "_xsrf=2|a|b|1", "a"])
def test_cookies_of_other_servers_of_this_host_are_passed_over(api: Api, others: str) -> None:
    own = httpx2.get(f"{api.url}/", params={"token": TOKEN}).headers["set-cookie"].partition(";")[0]
    headers = {"Cookie": f"{others}; {own}".encode("latin-1")}
    assert httpx2.get(f"{api.url}/api/sessions", headers=headers).status_code == 200


def test_the_link_leads_to_no_other_server(api: Api) -> None:
    answer = httpx2.get(f"{api.url}//evil.example/?token={TOKEN}")
    assert answer.headers["location"] == "/evil.example/"


def test_the_api_takes_no_token_from_the_address(api: Api) -> None:
    assert status(api, f"/api/sessions?token={TOKEN}") == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[", ""])
def test_another_host_name_is_refused(api: Api, host: str) -> None:
    assert status(api, authorization=BEARER, host=host) in (400, 403)


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1:99", "[::1]:3", "LOCALHOST"])
def test_this_machine_s_names_will_do_whatever_the_port(api: Api, host: str) -> None:
    assert status(api, authorization=BEARER, host=host) == 200


@pytest.mark.parametrize(
    ("site", "code"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
)
def test_a_picture_or_link_of_another_page_reaches_nothing(api: Api, site: str, code: int) -> None:
    assert status(api, authorization=BEARER, sec_fetch_site=site) == code


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "file://", "http://[", ""])
def test_another_origin_is_refused(api: Api, origin: str) -> None:
    assert status(api, authorization=BEARER, origin=origin) == 403
    with pytest.raises(InvalidStatus) as refused:
        api.follow("/api/follow", origin=origin)
    assert refused.value.response.status_code == 403


def test_our_own_page_may_speak(api: Api) -> None:
    assert status(api, authorization=BEARER, origin=api.url) == 200


def test_a_websocket_needs_the_token_too(api: Api) -> None:
    with pytest.raises(InvalidStatus) as refused:
        connect(api.url.replace("http", "ws") + "/api/follow")
    assert refused.value.response.status_code == 401


def test_too_large_a_body_is_refused(api: Api) -> None:
    large = b'{"task": "' + b"x" * (5 << 20) + b'"}'
    assert (
        api.http.post("/api/sessions", content=large, headers={"content-type": "application/json"}).status_code == 413
    )
    assert api.http.post("/api/blobs", content=b"\x89PNG\r\n\x1a\n" + bytes(4_000_000)).status_code == 413


def test_a_form_of_another_page_is_no_request(api: Api) -> None:
    answer = api.http.post("/api/sessions", content=b'{"task": "x"}', headers={"content-type": "text/plain"})
    assert answer.status_code == 415


def test_what_does_not_fit_is_said(api: Api) -> None:
    answer = api.http.post("/api/sessions", json={"task": " ", "workspace": "here", "colour": "red"})
    assert answer.status_code == 422
    assert answer.json()["error"].split("\n") == [
        "task: Value error, the task is empty: describe it in your own words",
        "workspace: Value error, the workspace must be an absolute path",
        "colour: Extra inputs are not permitted",
    ]


def test_without_a_token_only_this_machine_is_served(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="needs its token"):
        serve(tmp_path, "0.0.0.0", 0, False, print)


@pytest.mark.parametrize("host", ["nowhere.invalid", "192.0.2.1"])
def test_an_address_that_is_not_of_this_machine_is_said(host: str) -> None:
    with pytest.raises(SettingsError, match=f"cannot listen on {host} port 0: .*; give another --host"):
        bind(host, 0)


def test_a_port_that_is_taken_is_said() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"cannot listen on 127.0.0.1 port {port}: .*--port"):
            bind("127.0.0.1", port)


def test_the_token_stays_and_is_the_user_s_alone(tmp_path: Path) -> None:
    token = token_of(tmp_path)
    assert len(token) >= 32
    assert token_of(tmp_path) == token
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_too_large_a_body_is_refused_before_it_comes(api: Api) -> None:
    connection = http.client.HTTPConnection(api.url.removeprefix("http://"))
    connection.putrequest("POST", "/api/blobs")
    connection.putheader("authorization", BEARER)
    connection.putheader("content-length", str(10**12))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
