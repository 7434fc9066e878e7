"""Grades a log by the official package ``multi-swe-bench``: a program of its own, which runs without Handiwork.

Its argument is the folder with the package, its input {"row": INSTANCE, "log": TEXT}. Its output has "resolved", "why",
"captured", the number of tests in the log, and "failed", which lists the tests that are missing in their classes.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin

CLASSES = ("p2p_tests", "f2p_tests", "s2p_tests", "n2p_tests")


def main(folder: str) -> None:
    """Read a log and its instance from standard input, and write the report to standard output."""
    case = json.load(sys.stdin)
    row = case["row"]
    instance = _instance(Path(folder), row)
    try:
        fixed = instance.parse_log(case["log"])
    except Exception as error:  # noqa: BLE001 - upstream makes no report of any kind then, and the patch is not resolved
        json.dump({"resolved": False, "captured": 0, "why": repr(error), "failed": {}}, sys.stdout)
        return
    results = importlib.import_module("multi_swe_bench.harness.test_result")
    report = importlib.import_module("multi_swe_bench.harness.report").Report(
        org=row["org"],
        repo=row["repo"],
        number=row["number"],
        run_result=_result(results, row["run_result"]),
        test_patch_result=_result(results, row["test_patch_result"]),
        fix_patch_result=fixed,
    )
    failed = {name: sorted(set(row[name]) - set(getattr(report, name))) for name in CLASSES} if report.valid else {}
    failed = {name: tests for name, tests in failed.items() if tests}
    why = report.error_msg or ("tests are missing in their classes" if failed else "")
    resolved = bool(report.valid) and not failed
    json.dump({"resolved": resolved, "captured": fixed.all_count, "why": why, "failed": failed}, sys.stdout)


def _result(module: Any, record: dict[str, Any]) -> Any:
    names = ("passed_tests", "failed_tests", "skipped_tests")
    counts = {name: record[name] for name in ("passed_count", "failed_count", "skipped_count")}
    return module.TestResult(**counts, **{name: set(record[name]) for name in names})


def _instance(folder: Path, row: dict[str, Any]) -> Any:
    """Return the package's object for an instance, which parses logs.

    Only the one module of the instance's repository is imported: the package's own imports load 2,000 of them, and
    Docker's client. A package that makes records of JSON, and one for a function that is not called, are replaced.
    """
    sys.path.insert(0, str(folder))
    json_records = ModuleType("dataclasses_json")
    json_records.__dict__.update(dataclass_json=_decoding, config=_no_config)
    patches = ModuleType("unidiff")
    patches.__dict__["PatchSet"] = None
    sys.modules.update(dataclasses_json=json_records, unidiff=patches)
    root = folder / "multi_swe_bench" / "harness"
    file = _module_of(root / "repos", row["org"], row["repo"])
    for package in (root, *(path for path in reversed(file.parents) if path.is_relative_to(root / "repos"))):
        name = ".".join(package.relative_to(folder).parts)
        bare = ModuleType(name)
        bare.__path__ = [str(package)]
        sys.modules[name] = bare
    importlib.import_module(".".join(file.relative_to(folder).with_suffix("").parts))
    requests = importlib.import_module("multi_swe_bench.harness.pull_request")
    config = importlib.import_module("multi_swe_bench.harness.image").Config(False, None, False)
    texts = {"state": "", "title": "", "body": "", "fix_patch": "", "test_patch": ""}
    request = requests.PullRequest(
        **{name: row[name] for name in ("org", "repo", "number")},
        **texts,
        base=requests.Base("", "", ""),
        resolved_issues=[],
    )
    return importlib.import_module("multi_swe_bench.harness.instance").Instance.create(request, config)


def _module_of(repos: Path, org: str, repo: str) -> Path:
    """Return the file that registers a repository."""
    registered = re.compile(rf'Instance\.register\(\s*"{re.escape(org)}",\s*"{re.escape(repo)}"')
    for file in sorted(repos.rglob("*.py")):
        if registered.search(file.read_text(encoding="utf-8")):
            return file
    raise LookupError(f"the package has no repository {org}/{repo}")


def _decoding(cls: Any) -> Any:
    """Give a dataclass the `from_dict` of the package dataclasses_json, which decodes dataclasses in it too."""

    def from_dict(record: dict[str, Any]) -> Any:
        known = {field.name: field.type for field in fields(cls)}
        return cls(**{name: _decoded(known[name], value) for name, value in record.items() if name in known})

    cls.from_dict = staticmethod(from_dict)
    return cls


def _decoded(kind: Any, value: Any) -> Any:
    if get_origin(kind) is list and value is not None:
        return [_decoded(get_args(kind)[0], one) for one in value]
    decode = getattr(kind, "from_dict", None) if is_dataclass(kind) else None
    return value if decode is None else decode(value)


def _no_config(**_: Any) -> dict[str, Any]:
    return {}


if __name__ == "__main__":
    main(sys.argv[1])
