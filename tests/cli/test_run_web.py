"""``handiwork run --web``: the session that runs here is in the browser at the same time."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

pytestmark = pytest.mark.slow


def test_the_page_shows_the_session_and_stays_until_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"tool_calls": [{"name": "finish", "arguments": {"message": "Done."}}]}) + "\n")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HANDIWORK_") and key != "DISPLAY"}
    run = subprocess.Popen(
        [Path(sys.executable).with_name("handiwork"), "run", "finish", "--model", f"scripted:{script}", "--web"],
        cwd=tmp_path / "project",
        env={**kept, "HANDIWORK_DATA": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert run.stderr is not None
        told = ""
        while "Ctrl-C" not in told:
            line = run.stderr.readline()
            assert line, told
            told += line
        found = re.search(r"http\S+", told)
        assert found is not None
        link = urlsplit(found[0])
        bearer = {"authorization": f"Bearer {parse_qs(link.query)['token'][0]}"}
        server = f"{link.scheme}://{link.netloc}"
        session = httpx2.get(f"{server}/api/sessions/{link.path.removeprefix('/s/')}", headers=bearer).json()
        assert session["state"] == "finished"
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 0
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(server)
    finally:
        run.kill()
        run.communicate()
