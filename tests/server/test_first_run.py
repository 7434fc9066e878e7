"""A new user's first requests: a model is tried and chosen, a key given, a first task made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handiwork.settings import SettingsError, set_defaults, settings_file
from scripts.harness.serving import Api


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


def test_a_key_is_used_but_never_written(api: Api, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOGETHER_API_KEY", "")
    assert api.post("/api/models/key", provider="together", key="secret-1")["variable"] == "TOGETHER_API_KEY"
    assert os.environ["TOGETHER_API_KEY"] == "secret-1"
    assert {"name": "together:NAME", "ready": True, "about": "key in TOGETHER_API_KEY"} in api.get("/api/models")[
        "models"
    ]
    assert not config.exists()
    for wrong in ({"provider": "nobody", "key": "x"}, {"provider": "together", "key": " \n"}):
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
