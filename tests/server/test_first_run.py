"""A new user's first requests: a model is tried and chosen, a key given, a first task made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handiwork.settings import SettingsError, set_defaults, settings_file
from scripts.harness.serving import Api
from tests.llm.locked import locked_server


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return settings_file()


def test_a_model_is_tried(api: Api) -> None:
    model = api.script({"content": "Hello there."})
    assert api.post("/api/models/try", model=model)["reply"] == "Hello there."


def test_a_model_that_does_not_answer_says_why(api: Api) -> None:
    refused = api.http.post("/api/models/try", json={"model": "x", "base_url": "http://127.0.0.1:9/v1"})
    assert refused.status_code == 422
    assert "127.0.0.1:9" in refused.json()["error"]


def test_only_known_local_models_are_downloaded(api: Api) -> None:
    for name in ("local:nobody", "local:/model.gguf", "openai:gpt-5"):
        refused = api.http.post("/api/models/fetch", json={"model": name})
        assert refused.status_code == 422
        assert "known: local:qwen2.5-coder-1.5b" in refused.json()["error"]


def test_a_chosen_model_is_the_one_of_new_sessions(api: Api, config: Path) -> None:
    model = api.script({"content": "Hello there."})
    answer = api.http.patch("/api/settings", json={"model": model})
    assert answer.json()["model"] == model
    assert api.get("/api/settings")["model"] == model


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")


@pytest.mark.usefixtures("no_network")
def test_a_key_that_cannot_be_tested_is_used_on_request_but_never_written(
    api: Api, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOGETHER_API_KEY", "")
    untested = api.http.post("/api/models/key", json={"provider": "together", "key": "secret-1"})
    assert untested.status_code == 502
    assert "could not be tested" in untested.json()["error"]
    assert os.environ["TOGETHER_API_KEY"] == ""
    taken = api.post("/api/models/key", provider="together", key="secret-1", untested=True)
    assert taken["variable"] == "TOGETHER_API_KEY"
    assert os.environ["TOGETHER_API_KEY"] == "secret-1"
    assert {"name": "together:NAME", "ready": True, "about": "key in TOGETHER_API_KEY"} in api.get("/api/models")[
        "models"
    ]
    assert not config.exists()


def test_the_key_of_a_server_is_tested_with_its_list(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDIWORK_API_KEY", "")
    with locked_server("the-key", ["a-model"]) as base_url:
        asked = api.get("/api/models/offered", base_url=base_url)
        assert (asked["refused"], asked["problem"]) == (True, "the server asks for a key")
        for untested in (False, True):
            wrong = {"base_url": base_url, "key": "wrong", "untested": untested}
            refused = api.http.post("/api/models/key", json=wrong)
            assert refused.status_code == 422
            assert refused.json()["error"] == f"{base_url} refuses the key: copy it again, or make a new one"
        assert os.environ["HANDIWORK_API_KEY"] == ""
        assert api.post("/api/models/key", base_url=base_url, key="the-key")["variable"] == "HANDIWORK_API_KEY"
        assert [model["name"] for model in api.get("/api/models/offered", base_url=base_url)["models"]] == ["a-model"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"provider": "nobody", "key": "x"},
        {"provider": "together", "key": " \n"},
        {"key": "x"},
        {"base_url": "ftp://host", "key": "x"},
    ],
)
def test_a_key_of_nobody_and_no_key_are_refused(wrong: dict[str, str], api: Api) -> None:
    assert api.http.post("/api/models/key", json=wrong).status_code == 422


def test_the_first_task_is_a_repository_whose_tests_fail_for_one_bug(api: Api) -> None:
    folder = Path(api.post("/api/demo")["workspace"])
    command = [sys.executable, "-m", "unittest"]
    assert subprocess.run(command, cwd=folder, capture_output=True).returncode == 1
    tasks = folder / "todo" / "tasks.py"
    tasks.write_text(tasks.read_text().replace("self.done.append", "self.done.add"))
    assert subprocess.run(command, cwd=folder, capture_output=True).returncode == 0
    assert Path(api.post("/api/demo")["workspace"]) != folder


def test_settings_are_changed_and_all_else_in_the_file_stays(config: Path) -> None:
    config.parent.mkdir(parents=True)
    config.write_text('# mine\nagent = """\nmodel = 1"""\nmodel = "old" # why\nbase_url = "x"\nmax_cost = 7 # enough\n')
    set_defaults({"model": 'a "quoted" name', "base_url": None})
    assert config.read_text() == (
        '# mine\nagent = """\nmodel = 1"""\nmodel = "a \\"quoted\\" name" # why\nmax_cost = 7 # enough\n'
    )


@pytest.mark.parametrize("text", ["model is openai\n", 'model = "a"\nmodel = "b"\n'])
def test_a_file_that_is_not_toml_is_left_alone(config: Path, text: str) -> None:
    config.parent.mkdir(parents=True)
    config.write_text(text)
    with pytest.raises(SettingsError, match="by hand"):
        set_defaults({"model": "other"})
    assert config.read_text() == text
