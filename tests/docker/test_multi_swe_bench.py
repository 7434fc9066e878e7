"""Multi-SWE-bench in containers: an instance of our own, in an image with the layout and the scripts of official ones.

The scripts are those that the official package makes for jqlang/jq; the programs that they call, autoreconf and make,
are scripts of our own. The repository's history has the repair, as those of official images do.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from handiwork.evals import registry
from handiwork.evals.benchmark import DataError
from handiwork.evals.benchmarks.multi_swe_bench import grader, images, official
from handiwork.evals.benchmarks.multi_swe_bench.benchmark import MultiSWEBench
from handiwork.evals.running import plan
from handiwork.evals.running.arms import EMPTY, ORACLE
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from handiwork.evals.running.results import Result
from handiwork.evals.scoring import packages
from scripts.harness.images import image
from tests.cli.program import bash, finish
from tests.evals.runs import finished, no_status, script

pytestmark = pytest.mark.usefixtures("docker_daemon")

OFFICIAL = "mswebench/jqlang_m_jq:pr-7"
WRONG, RIGHT = "double() { echo $(($1 + 1)); }\n", "double() { echo $(($1 * 2)); }\n"
FILES: Mapping[str, str] = {
    "src/double.sh": WRONG,
    "src/name.sh": "name() { echo doubler; }\n",
    "configure": "#!/bin/sh\necho configured > config.status\n",
    ".gitignore": "config.status\nbuilt\n",
    "tests/one": '. src/double.sh; [ "$(double 1)" = 2 ]\n',
    "tests/name": '. src/name.sh; [ "$(name)" = doubler ]\n',
}
AFTER = {**FILES, "src/double.sh": RIGHT, "tests/three": '. src/double.sh; [ "$(double 3)" = 6 ]\n'}
PROGRAMS: Mapping[str, str] = {
    "autoreconf": "#!/bin/sh\n",
    "make": """#!/bin/bash
case $1 in
  check) for test in tests/*; do if sh $test; then echo "PASS: $test"; else echo "FAIL: $test"; fi; done ;;
  clean) rm -f built ;;
  *) [ -e config.status ] && touch built ;;
esac
""",
}

MADE = r"""
import importlib.util, json, pathlib, sys
spec = importlib.util.spec_from_file_location("official", sys.argv[1])
official = importlib.util.module_from_spec(spec)
spec.loader.exec_module(official)
row = json.load(sys.stdin)
instance = official._instance(pathlib.Path(sys.argv[2]), row)
instance.pr.base.sha, instance.pr.fix_patch, instance.pr.test_patch = row["sha"], row["fix_patch"], row["test_patch"]
json.dump({file.name: file.content for file in instance.dependency().files()}, sys.stdout)
"""
"""Prints the files that the official package puts into the image of a row."""


def git(repository: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=repository, capture_output=True, text=True, check=True)
    return done.stdout


def commit(repository: Path, files: Mapping[str, str], message: str) -> str:
    for name, text in files.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
        (repository / name).chmod(0o755 if name == "configure" else 0o644)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", message)
    return git(repository, "rev-parse", "HEAD").strip()


def result(**tests: str) -> dict[str, Any]:
    """The results of a run, as rows have them."""
    names = {kind: [f"tests/{test}" for test, one in tests.items() if one == kind] for kind in ("passed", "failed")}
    lists = {"passed_tests": names["passed"], "failed_tests": names["failed"], "skipped_tests": []}
    return {**{f"{name[:-6]}_count": len(one) for name, one in lists.items()}, **lists}


def row_of(repository: Path) -> dict[str, Any]:
    """Make the repository, and return its row."""
    repository.mkdir()
    git(repository, "init", "--quiet", "--initial-branch=master")
    base = commit(repository, FILES, "Add a doubler")
    commit(repository, AFTER, "Repair the doubler")
    status = {"run": "NONE", "test": "FAIL", "fix": "PASS"}
    return {
        "instance_id": "jqlang__jq-7",
        "org": "jqlang",
        "repo": "jq",
        "number": 7,
        "title": "Repair the doubler",
        "body": "Multiply instead.",
        "sha": base,
        "resolved_issues": [{"number": 6, "title": "Three doubled is four", "body": None}],
        "fix_patch": git(repository, "diff", base, "master", "--", "src"),
        "test_patch": git(repository, "diff", base, "master", "--", "tests"),
        "p2p_tests": {"tests/one": status, "tests/name": status},
        "f2p_tests": {"tests/three": status},
        "s2p_tests": {},
        "n2p_tests": {},
        "run_result": result(one="passed", name="passed"),
        "test_patch_result": result(one="passed", name="passed", three="failed"),
        "fix_patch_result": result(one="passed", name="passed", three="passed"),
    }


def make_image(repository: Path, row: Mapping[str, Any]) -> None:
    """Make the image of a row as the Dockerfiles of the official package do, and its ignored files besides."""
    package = packages.fetched(grader.PACKAGE, grader._SHA256)  # pyright: ignore[reportPrivateUsage]
    command = [sys.executable, "-I", "-c", MADE, official.__file__, str(package)]
    made = subprocess.run(command, input=json.dumps(row), capture_output=True, text=True, check=True)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(repository, "home/jq")
        for name, text in {f"home/{name}": text for name, text in json.loads(made.stdout).items()}.items():
            _add(tar, name, text)
        for name, text in PROGRAMS.items():
            _add(tar, f"usr/local/bin/{name}", text)
    prepare = "tar -x -C / --no-same-owner && bash /home/prepare.sh && cd /home/jq && sh configure && touch built"
    docker = ["docker", "run", "--interactive", "--network=none", "--name=multi-swe-bench-test"]
    try:
        built = subprocess.run(
            [*docker, "--entrypoint=/bin/bash", image("machine"), "-c", prepare],
            input=archive.getvalue(),
            capture_output=True,
            check=False,
        )
        assert built.returncode == 0, built.stderr
        subprocess.run(["docker", "commit", "multi-swe-bench-test", OFFICIAL], capture_output=True, check=True)
    finally:
        subprocess.run(["docker", "rm", "--force", "multi-swe-bench-test"], capture_output=True, check=False)


def _add(tar: tarfile.TarFile, name: str, text: str) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(text.encode()), 0o755
    tar.addfile(member, io.BytesIO(text.encode()))


@pytest.fixture(scope="module")
def row(docker_daemon: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    place = tmp_path_factory.mktemp("upstream")
    made = row_of(place / "jq")
    make_image(place / "jq", made)
    derived = images.without_answers(images.local_images()[OFFICIAL])
    yield made
    subprocess.run(["docker", "image", "rm", "--force", derived, OFFICIAL], capture_output=True, check=False)


@pytest.fixture
def data(row: Mapping[str, Any], tmp_path: Path) -> Path:
    """A data folder with the instance, and another one whose image is missing."""
    other = {**row, "instance_id": "jqlang__jq-8", "number": 8}
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "c.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(other)}\n")
    return folder


async def rolled_out(place: Path, data: Path, agent: str, *replies: dict[str, object]) -> tuple[Result, str]:
    """The result of an arm, or of an agent with these replies, and its trajectory."""
    conditions = Conditions(
        benchmark="multi-swe-bench",
        split="c",
        data=str(data),
        agent=agent,
        model=script(place / "model.jsonl", *replies) if replies else "",
        user_model="",
    )
    planned = await plan.new(registry.find("multi-swe-bench"), conditions, InstanceSelection(), 1, no_status)
    assert planned.manifest.skipped == {
        "jqlang__jq-8": "its image is not here: `docker pull mswebench/jqlang_m_jq:pr-8`"
    }
    assert planned.manifest.conditions.sandbox == "docker"
    (one,) = (await finished(place / "out", planned)).values()
    return one, (place / "out" / one.trajectory).read_text() if one.trajectory else ""


async def test_the_arms_score_1_and_0(data: Path, tmp_path: Path) -> None:
    for arm, score in ((ORACLE, 1.0), (EMPTY, 0.0)):
        (tmp_path / arm).mkdir()
        one, _ = await rolled_out(tmp_path / arm, data, arm)
        assert (one.outcome, one.score) == ("submitted", score), (one.why, one.details)


PROBES = r"""
count() { echo "$1: $(cat | wc -l)"; }
git log --all --oneline | count history
git cat-file --batch-all-objects --batch-check='%(objectname)' | sort > /tmp/every
git rev-list --objects HEAD | cut -d ' ' -f 1 | sort > /tmp/reachable
comm -3 /tmp/every /tmp/reachable | count unreachable
git status --porcelain | count changed
find / -path /proc -prune -o -path /sys -prune -o -print 2> /dev/null > /tmp/paths
grep -E '\.patch$|(run|prepare|check_git_changes)\.sh$' /tmp/paths | count answers
grep -E '\.git$' /tmp/paths | count repositories
grep -rlE 'tests/thre[e]|[*] 2[)]{2}' / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr --exclude-dir=opt \
    --exclude-dir=lib --exclude-dir=lib64 2> /dev/null | tee -a /dev/stderr | count repair
env | grep -iE 'jq|mswe' | count variables
touch built; ls -d /home/jq/built | count built
id -u | sed 's/^/uid: /'
"""
SEEN = {"history": 1, "unreachable": 0, "changed": 0, "answers": 0, "repositories": 1, "repair": 0, "variables": 0}


async def test_an_agent_finds_neither_history_nor_repair_nor_tests(data: Path, tmp_path: Path) -> None:
    one, trajectory = await rolled_out(tmp_path, data, "CodeActAgent", bash(PROBES), finish())
    assert (one.outcome, one.score) == ("submitted", 0.0), (one.why, one.details)
    for name, number in {**SEEN, "built": 1, "uid": 0}.items():
        assert f"{name}: {number}" in trajectory, trajectory
    assert "Three doubled is four" in trajectory
    assert "Multiply instead" not in trajectory


def test_the_same_probes_find_all_that_in_the_official_image(row: Mapping[str, Any]) -> None:
    command = [
        "docker",
        "run",
        "--rm",
        "--network=none",
        "--entrypoint=/bin/bash",
        "--workdir=/home/jq",
        OFFICIAL,
        "-c",
    ]
    done = subprocess.run([*command, PROBES], capture_output=True, text=True, check=True)
    seen = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    assert seen["history"] == "2"
    assert all(int(seen[name]) > 0 for name in ("unreachable", "answers", "repair")), seen


async def test_an_agents_changes_are_scored_whatever_it_did_with_git(data: Path, tmp_path: Path) -> None:
    repair = "sed -i 's/+ 1/* 2/' /home/jq/src/double.sh; git commit --quiet -am mine; rm -rf .git; touch built"
    one, _ = await rolled_out(tmp_path, data, "CodeActAgent", bash(repair), finish())
    assert (one.outcome, one.score) == ("submitted", 1.0), (one.why, one.details)
    assert "config.status" not in one.answer


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("sed -i 's/+ 1/* 2/' src/double.sh; echo 'name() { echo; }' > src/name.sh", "the test failed"),
        ("sed -i 's/+ 1/+ 2/' src/double.sh", "the test failed"),
        ("echo '# nothing' >> src/double.sh", "no test cases transitioned"),
        # Both patches add the file.
        ("sed -i 's/+ 1/* 2/' src/double.sh; echo true > tests/three", "no test results were captured"),
    ],
)
async def test_a_patch_that_breaks_or_repairs_nothing_is_not_resolved(
    data: Path, tmp_path: Path, change: str, why: str
) -> None:
    one, _ = await rolled_out(tmp_path, data, "CodeActAgent", bash(change), finish())
    assert (one.outcome, one.score) == ("submitted", 0.0), (one.why, one.details)
    assert why in str(one.details["why"])


async def test_a_patch_that_hangs_is_doubtful(data: Path) -> None:
    instance, _ = MultiSWEBench().load(data, "c")
    hanging = instance.row["fix_patch"].replace("+double()", "+sleep 60; double()")
    grade = await grader.grade(instance.row, hanging, 10)
    assert (grade.resolved, grade.doubtful, grade.why) == (False, True, "the tests took more than 10 s")


async def test_an_instance_whose_own_solution_fails_is_unfit(
    data: Path, row: Mapping[str, Any], tmp_path: Path
) -> None:
    missing: dict[str, Any] = {**row["p2p_tests"], "tests/missing": {}}
    impossible = {**row, "p2p_tests": missing, "instance_id": "jqlang__jq-7x"}
    other = {**row, "instance_id": "jqlang__jq-8", "number": 8}
    (data / "c.jsonl").write_text(f"{json.dumps(impossible)}\n{json.dumps(other)}\n")
    one, _ = await rolled_out(tmp_path, data, ORACLE)
    assert one.outcome == "unfit"
    assert "its own reference solution is not resolved here: tests are missing in their classes" in one.why


async def test_without_any_image_the_run_says_how_to_fetch_one(row: Mapping[str, Any], tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text(json.dumps({**row, "instance_id": "jqlang__jq-8", "number": 8}) + "\n")
    conditions = Conditions(
        benchmark="multi-swe-bench", split="c", data=str(tmp_path), agent=EMPTY, model="", user_model=""
    )
    with pytest.raises(DataError, match="`docker pull mswebench/jqlang_m_jq:pr-8`"):
        await plan.new(registry.find("multi-swe-bench"), conditions, InstanceSelection(), 1, no_status)
