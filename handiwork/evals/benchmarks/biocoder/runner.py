"""Runs a program once for each set of variables: a program of its own, in a sandbox, which runs without Handiwork.

Its arguments are a file with a list of sets in JSON, the seconds of CPU time and of wall time of each run, and the
program's command. For each set it prints a line of JSON: the exit code, the SHA-256 of the stripped standard output,
and the end of the output and of the errors. A run that fails is the last one.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping

SHOWN = 300
"""The bytes of the output and of the errors that are shown."""


def main(cases: str, seconds: str, patience: str, *command: str) -> None:
    """Run the program for each set of variables, one after the other."""
    limited = ["bash", "-c", f'ulimit -St {seconds}; exec "$@"', "bash", *command]
    with open(cases, encoding="utf-8") as file:
        sets: list[Mapping[str, str]] = json.load(file)
    for variables in sets:
        try:
            done = subprocess.run(
                limited,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=float(patience),
            )
            code, output, errors = done.returncode, done.stdout.strip(), done.stderr
        except subprocess.TimeoutExpired as error:
            code, output, errors = -1, (error.stdout or b"").strip(), b"the time is up"
        digest = hashlib.sha256(output).hexdigest()
        ends = [text[-SHOWN:].decode(errors="replace") for text in (output, errors)]
        sys.stdout.write(f"{json.dumps([code, digest, *ends])}\n")
        if code:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
