"""Runs inside the environment of mini-swe-agent: mini_swe_agent.py shell FOLDER COUNT. Prints one line of JSON."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import os
import sys
import time

from minisweagent.environments.local import LocalEnvironment


def shell(folder: str, count: int) -> dict[str, object]:
    os.chdir(folder)
    began = time.monotonic()
    environment = LocalEnvironment()
    environment.execute({"command": "echo hi"})
    start, echoes = time.monotonic() - began, []
    for number in range(count):
        began = time.monotonic()
        result = environment.execute({"command": f"echo hi {number}"})
        echoes.append(time.monotonic() - began)
        assert result["output"] == f"hi {number}\n", result
    return {"start": start, "echo": echoes}


if __name__ == "__main__":
    print(json.dumps(shell(sys.argv[2], int(sys.argv[3]))))
