"""The lists of models: a provider's own, with the prices that ship, or the shipped list; keys, tested and kept."""

from __future__ import annotations

import gzip
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from handiwork.llm.availability import KEYS, models
from handiwork.llm.catalog.keys import KeysError, keep_key, keys_file, load_keys
from handiwork.llm.catalog.listing import models_of
from handiwork.llm.catalog.requests import CHECKS, LISTS, KeyState, check_key

pytestmark = pytest.mark.slow

KEY = "the-key"
ANSWERS: dict[str, Any] = {
    "/openai": {"data": [{"id": "gpt-5"}, {"id": "of-my-own"}, {"no": "name"}, 7]},
    "/anthropic": {"data": [{"id": "claude-sonnet-4-5", "display_name": "Claude Sonnet 4.5"}]},
    "/google": {"models": [{"name": "models/gemini-2.5-pro", "displayName": "Gemini 2.5 Pro"}]},
    "/together": [{"id": "a/model"}],
    "/strange": {"data": "none"},
    "/public": {"data": [{"id": "for/everybody"}]},
    "/broken": {},
}
REFUSAL = {"error": {"code": 400, "details": [{"reason": "API_KEY_INVALID"}]}}


class Lists(BaseHTTPRequestHandler):
    """Answers each path of ANSWERS to requests with the key, in the header of any provider; /public needs none."""

    def do_GET(self) -> None:
        headers = {self.headers.get(name) for name in ("x-api-key", "x-goog-api-key", "authorization")}
        known = self.path == "/public" or bool(headers & {KEY, f"Bearer {KEY}"})
        refusal = 400 if self.path == "/google" else 401
        self.send_response(503 if self.path == "/broken" else 200 if known else refusal)
        self.end_headers()
        self.wfile.write(json.dumps(ANSWERS[self.path] if known else REFUSAL).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        pass


def dripping() -> Iterator[bytes]:
    while True:
        time.sleep(0.05)
        yield b" "


HOSTILE: dict[str, Callable[[], Iterable[bytes]]] = {
    "/too-long": lambda: (bytes(65536) for _ in range(1000)),
    "/dripping": dripping,
    "/compressed": lambda: [gzip.compress(bytes(50_000_000))],
    "/deep": lambda: [b"[" * 100_000],
}


class HostileLists(Lists):
    """Answers each path of HOSTILE until the client hangs up."""

    def do_GET(self) -> None:
        self.send_response(200)
        if self.path == "/compressed":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        with suppress(OSError):
            for piece in HOSTILE[self.path]():
                self.wfile.write(piece)


@contextmanager
def serving(handler: type[Lists]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def url() -> Iterator[str]:
    with serving(Lists) as address:
        yield address


@pytest.fixture(autouse=True)
def no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for variable in [name for names in KEYS.values() for name in names]:
        monkeypatch.setenv(variable, "")  # so that it is as before after the test
        monkeypatch.delenv(variable)


def test_every_provider_has_a_list() -> None:
    assert set(LISTS) == set(KEYS)


@pytest.mark.parametrize(
    ("provider", "names"),
    [
        ("openai", ["gpt-5", "of-my-own"]),
        ("anthropic", ["claude-sonnet-4-5"]),
        ("google", ["gemini-2.5-pro"]),
        ("together", ["a/model"]),
    ],
)
async def test_a_provider_s_own_list_has_the_shipped_prices(provider: str, names: list[str], url: str) -> None:
    listing = await models_of(provider, f"{url}/{provider}", KEY)
    assert (listing.source, listing.problem) == ("provider", "")
    assert [model.name for model in listing.models] == names
    known = [model for model in listing.models if model.output is not None]
    assert all(model.input for model in known)
    assert [model.name for model in known] == [name for name in names if "own" not in name and name != "a/model"]


async def test_without_a_key_the_list_is_the_shipped_one() -> None:
    for provider in KEYS:
        listing = await models_of(provider)
        assert listing.source == "shipped"
        assert listing.problem == f"no key: set {KEYS[provider][0]}"
        assert len(listing.models) > 3
        assert all(model.output for model in listing.models)


async def test_a_key_that_is_refused_and_a_list_that_is_none_are_told(url: str) -> None:
    refused = await models_of("openai", f"{url}/openai", "wrong")
    assert refused.refused
    assert refused.models == (await models_of("openai")).models
    strange = await models_of("", f"{url}/strange", KEY)
    assert (strange.source, strange.models, strange.refused) == ("shipped", (), False)
    assert "no list" in strange.problem
    gone = await models_of("", "http://127.0.0.1:9/v1/models")
    assert "cannot be read" in gone.problem
    asked = await models_of("", f"{url}/openai")
    assert (asked.refused, asked.problem) == (True, "the server asks for a key")


HOSTILE_ANSWERS = [
    ("/too-long", "sent more than 4 MB"),
    ("/dripping", "TimeoutError"),
    ("/compressed", "sent a compressed answer"),
]


@pytest.mark.parametrize(("path", "reason"), [*HOSTILE_ANSWERS, ("/deep", "nested too deeply")])
async def test_a_list_without_end_or_measure_is_told_and_not_read(
    path: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handiwork.llm.catalog.listing.SECONDS", 0.5 if path == "/dripping" else 10)
    with serving(HostileLists) as address:
        listing = await models_of("", address + path, KEY)
    assert (listing.source, listing.models) == ("shipped", ())
    assert reason in listing.problem


@pytest.mark.parametrize(("path", "reason"), HOSTILE_ANSWERS)
async def test_a_key_is_untested_if_the_answer_has_no_end_or_measure(
    path: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handiwork.llm.catalog.requests.SECONDS", 0.25 if path == "/dripping" else 10)
    with serving(HostileLists) as address:
        state, problem = await check_key("", KEY, address + path)
    assert state is KeyState.UNTESTED
    assert reason in problem


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
async def test_a_key_is_accepted_or_refused(provider: str, url: str) -> None:
    assert await check_key(provider, KEY, f"{url}/{provider}") == (KeyState.ACCEPTED, "")
    assert await check_key(provider, "wrong", f"{url}/{provider}") == (KeyState.REFUSED, "")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("/public", "answers without a key too"),
        ("/broken", "answers with 503"),
        ("http://127.0.0.1:9/v1/models", "cannot be reached"),
    ],
)
async def test_a_key_that_nothing_tests_is_untested(address: str, reason: str, url: str) -> None:
    state, problem = await check_key("", KEY, address if "://" in address else url + address)
    assert state is KeyState.UNTESTED
    assert reason in problem


def test_openrouters_key_is_tested_at_an_address_that_needs_it() -> None:
    assert set(CHECKS) == set(KEYS)
    assert CHECKS["openrouter"] != LISTS["openrouter"]


def test_a_key_is_kept_for_the_user_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_key("OPENAI_API_KEY", "kept")
    keep_key("ANTHROPIC_API_KEY", "kept too")
    assert stat.S_IMODE(keys_file().stat().st_mode) == 0o600
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the environment's")
    load_keys()
    assert (os.environ["OPENAI_API_KEY"], os.environ["ANTHROPIC_API_KEY"]) == ("kept", "the environment's")
    states = {name: state for name, _, state in models()}
    assert states["openai:NAME"] == f"key in {keys_file()}"
    assert states["anthropic:NAME"] == "key in ANTHROPIC_API_KEY"
    keep_key("OPENAI_API_KEY", None)
    assert json.loads(keys_file().read_text()) == {"ANTHROPIC_API_KEY": "kept too"}
    keys_file().chmod(0o644)
    with pytest.raises(KeysError, match="chmod 600"):
        load_keys()
