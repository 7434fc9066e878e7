"""Grades a log by the official package ``swebench``: a program of its own, which runs without Handiwork.

Its argument is the folder with the package, its input {"row": INSTANCE, "parser": NAME, "log": TEXT}, its output the
package's report on the instance, with the version of the package.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any


def main(folder: str) -> None:
    """Read a log and its instance from standard input, and write the report to standard output."""
    case = json.load(sys.stdin)
    row = case["row"]
    package, grading, types = _load(folder)
    spec = types.TestSpec(
        instance_id=row["instance_id"],
        image="",
        eval_script_list=[],
        repo=row["repo"],
        version=row["version"],
        FAIL_TO_PASS=row["FAIL_TO_PASS"],
        PASS_TO_PASS=row["PASS_TO_PASS"],
        log_parser=case["parser"],
        eval_type="pass_and_fail",
    )
    prediction = {"instance_id": row["instance_id"], "model_patch": "as applied"}
    with tempfile.TemporaryDirectory() as name:
        log = Path(name, "test_output.txt")
        log.write_text(case["log"])
        report = grading.get_eval_report(spec, prediction, str(log), True)[row["instance_id"]]
    json.dump({**report, "version": package.__version__}, sys.stdout)


def _load(folder: str) -> tuple[Any, Any, Any]:
    """Return the package, its grading and its types, without the modules that need Docker and other packages."""
    sys.path.insert(0, folder)
    package = importlib.import_module("swebench")
    harness = ModuleType("swebench.harness")
    harness.__path__ = [f"{folder}/swebench/harness"]
    sys.modules["swebench.harness"] = harness
    # The parsers import a module for one function that does not need this package.
    patches = ModuleType("unidiff")
    patches.__dict__["PatchSet"] = None
    sys.modules["unidiff"] = patches
    return package, importlib.import_module("swebench.harness.grading"), importlib.import_module("swebench.types")


if __name__ == "__main__":
    main(sys.argv[1])
