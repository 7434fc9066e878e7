"""SWE-bench: real instances, with their environments, in sandboxes.

A few run in test-slow, all in test-benchmarks, which prints a table of them. An environment that is not in the cache
yet is built first.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handiwork.errors import SandboxError
from handiwork.evals import registry
from handiwork.evals.benchmark import Instance, SkippedError, UnfitError
from handiwork.evals.benchmarks.swebench import (
    benchmark,
    environments,
    grader,
    installations,
    recipes,
    repositories,
)
from handiwork.evals.benchmarks.swebench.benchmark import SWEBench, subject_of
from handiwork.evals.running import plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from handiwork.evals.running.results import Result
from handiwork.evals.scoring.execution import new_sandbox
from handiwork.evals.scoring.patches import Grade, check_reference
from handiwork.events.action import CmdRunAction
from handiwork.events.record import Limits
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create
from tests.cli.program import bash, finish
from tests.evals.rollouts import folder, instances, rollout
from tests.evals.runs import finished, no_status, script
from tests.workspace.trees import Session, found, write_tree

SWEBENCH = SWEBench()
FLASK, PYTEST = "pallets__flask-4992", "pytest-dev__pytest-7168"
REPAIRED = "src/flask/config.py"

FLAKY = {"sympy__sympy-13177"}
"""Instances whose reference solution fails in some runs: a test of this one hits the recursion limit by chance."""

RECORD: Mapping[str, Any] = {
    "instance_id": "owner__name-1",
    "python": "3.11",
    "requirements": ["a==1", "b==2"],
    "install": [
        "uv venv -q -p 3.11 ../venv",
        "uv pip install -q -p ../venv/bin/python --no-deps a==1 b==2",
        "VERSION=2 uv pip install -q -p ../venv/bin/python --no-deps --no-build-isolation -C editable_mode=compat -e .",
    ],
    "test_command": 'PATH="$PWD/../venv/bin:$PATH" pytest -rA tests/test_a.py',
    "parser": "parse_log_pytest",
}
ROW: Mapping[str, Any] = {
    "instance_id": "owner__name-1",
    "repo": "owner/name",
    "base_commit": "0" * 40,
    "version": "1.0",
    "problem_statement": "It fails.",
    "patch": "",
    "test_patch": "",
    "FAIL_TO_PASS": '["test_a"]',
    "PASS_TO_PASS": ["test_b"],
}


def loaded(place: Path, record: Mapping[str, Any], row: Mapping[str, Any] = ROW) -> Instance:
    """The instance of a data folder with one row, one record, and a repository."""
    (place / "repos").mkdir(exist_ok=True)
    (place / "repos/owner__name.bundle").touch()
    (place / "swe_bench_lite_test.jsonl").write_text(json.dumps(row) + "\n")
    (place / "kit.json").write_text(json.dumps([record]))
    (instance,) = SWEBENCH.load(place, "lite")
    return instance


def real(name: str) -> Instance:
    return next(one for one in instances(SWEBENCH) if one.id == name)


def graded(instance: Instance, patch: str, seconds: float = grader.SECONDS) -> grader.Grade:
    async def grade() -> grader.Grade:
        subject = subject_of(instance)
        await installations.install(subject)
        return await grader.grade(instance.row, subject, patch, seconds)

    return asyncio.run(grade())


def change(instance: Instance, place: Path, command: str) -> str:
    """The patch that a shell command makes in the repository of an instance."""
    place.mkdir()
    SWEBENCH.prepare(instance, place)
    return output_of(place, f"{command}; git add --all; git diff --cached --binary")


def output_of(place: Path, command: str) -> str:
    done = subprocess.run(["bash", "-ec", command], cwd=place, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def plain_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the packages of this machine's other Pythons out of the sandboxes."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def test_rows_name_their_tests_in_either_form(tmp_path: Path) -> None:
    instance = loaded(tmp_path, RECORD)
    assert (instance.row["FAIL_TO_PASS"], instance.row["PASS_TO_PASS"]) == (["test_a"], ["test_b"])
    assert instance.group == "owner/name"
    assert "It fails." in SWEBENCH.instruction(instance)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"python": "2.1"}, "there is no Python 2.1"),
        ({"before_test": ["ip link set lo up"]}, "a sandbox has no network"),
        ({"install": [*RECORD["install"], "pip download -d ../sd a==1"]}, "its installation downloads files"),
    ],
)
def test_instances_that_cannot_be_built_say_why(tmp_path: Path, changed: Mapping[str, Any], reason: str) -> None:
    assert reason in SWEBENCH.skipped(loaded(tmp_path, {**RECORD, **changed}))


def test_an_instance_without_a_recipe_says_so(tmp_path: Path) -> None:
    other = {**RECORD, "instance_id": "owner__name-2"}
    assert "kit.json has no recipe" in SWEBENCH.skipped(loaded(tmp_path, other))
    noted = {"instance_id": "owner__name-1", "note": "repository not available"}
    assert SWEBENCH.skipped(loaded(tmp_path, noted)) == "repository not available"


def test_an_instance_without_a_recipe_takes_that_of_its_version_with_its_own_tests(tmp_path: Path) -> None:
    other = {**RECORD, "instance_id": "owner__name-2", "repo": "owner/name", "test_files": ["tests/test_a.py"]}
    changed = ("tests/test_b.py", "tests/data/rows.txt", "tests/test c.py")
    row = {**ROW, "test_patch": "".join(f"diff --git a/{file} b/{file}\n+x\n" for file in changed)}
    found = loaded(tmp_path, {**other, "version": "1.0", "note": "not of this one"}, row).row["recipe"]
    assert (
        recipes.read(found).test_command == "PATH=\"$PWD/.venv/bin:$PATH\" pytest -rA tests/test_b.py 'tests/test c.py'"
    )
    assert recipes.read(found).install == recipes.read(RECORD).install
    assert "kit.json has no recipe" in SWEBENCH.skipped(loaded(tmp_path, {**other, "version": "2.0"}, row))


def test_an_instance_whose_commit_the_repository_lacks_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDIWORK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "repos").mkdir()
    commit = "git -c user.name=a -c user.email=a@b commit --quiet --allow-empty --message base"
    bundle = "git bundle create --quiet repos/owner__name.bundle HEAD; git rev-parse HEAD"
    base = output_of(tmp_path, f"git init --quiet .; {commit}; {bundle}").strip()
    assert SWEBENCH.skipped(loaded(tmp_path, RECORD, {**ROW, "base_commit": base})) == ""
    assert f"has neither of refs/heads/owner__name-1, {'0' * 40}" in SWEBENCH.skipped(loaded(tmp_path, RECORD))


def test_a_reference_solution_whose_tests_were_killed_does_not_make_its_instance_unfit() -> None:
    killed = Grade(False, grader.PACKAGE, "the tests received SIGKILL", doubtful=True, killed=True)
    with pytest.raises(SandboxError, match="received SIGKILL, when they tried the reference solution"):
        check_reference(killed)
    with pytest.raises(UnfitError, match="not resolved here: the tests took more"):
        check_reference(replace(killed, why="the tests took more than 5 s", killed=False))


def test_scoring_has_time_for_three_gradings() -> None:
    assert SWEBENCH.scoring_seconds >= 3 * grader.SECONDS


def test_instances_with_the_same_requirements_share_an_environment_and_not_an_installation() -> None:
    one = recipes.read(RECORD)
    other = recipes.read({**RECORD, "install": RECORD["install"][:-1], "requirements": ["b==2", "a==1"]})
    assert one.environment == other.environment
    assert one.environment != recipes.read({**RECORD, "requirements": ["a==1", "b==3"]}).environment
    assert one.environment != recipes.read({**RECORD, "python": "3.9"}).environment
    assert one.installation("tree") not in (other.installation("tree"), one.installation("another tree"))


def test_an_environment_that_cannot_be_built_is_tried_once_for_all_its_instances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDIWORK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    python, tries = tmp_path / ".pyenv/versions/9.9.1/bin/python9.9", tmp_path / "tries"
    failing = f'[ "$1" = -c ] && echo 9.9 && exit; echo "$@" >> {tries}; echo no compiler >&2; exit 1'
    write_tree(tmp_path, {f"x:{python.relative_to(tmp_path)}": f"#!/bin/sh\n{failing}\n".encode()})
    for command in ("pytest a", "pytest b"):
        with pytest.raises(SkippedError, match=r"cannot be built: .*no compiler"):
            environments.built(recipes.read({**RECORD, "python": "9.9", "test_command": command}))
    assert len(tries.read_text().splitlines()) == 1


def test_a_recipe_installs_into_the_checkouts_own_environment() -> None:
    recipe = recipes.read(RECORD)
    assert recipe.install == (
        "VERSION=2 .venv/bin/python -m pip install -q --use-pep517 --no-deps --no-build-isolation "
        "--config-settings editable_mode=compat -e .",
    )
    assert recipe.test_command == 'PATH="$PWD/.venv/bin:$PATH" pytest -rA tests/test_a.py'


def test_a_checkout_has_one_commit_and_no_other_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDIWORK_CACHE", str(tmp_path / "cache"))
    upstream, checkout, bundle = tmp_path / "upstream", tmp_path / "checkout", tmp_path / "owner__name.bundle"
    upstream.mkdir()
    checkout.mkdir()
    commit = "git -c user.name=a -c user.email=a@b commit --quiet --all --message"
    output_of(
        upstream,
        "git init --quiet --initial-branch=bug .; mkdir src; echo wrong > src/a; ln -s src/a link; git add .; "
        f"{commit} 'base of owner__name-1'; git checkout --quiet -b repaired; echo right > src/a; "
        f"{commit} 'repair'; git bundle create --quiet {bundle} --branches",
    )
    tree = repositories.tree_of(bundle, ("refs/heads/bug",))
    repositories.check_out(bundle, tree, checkout)
    assert output_of(checkout, "cat link") == "wrong\n"
    assert output_of(checkout, "git rev-parse HEAD^{tree}").strip() == tree
    assert output_of(checkout, "git status --porcelain") == ""
    assert output_of(checkout, "git log --all --format=%s%P") == "Initial commit\n"
    every, reachable = "git cat-file --batch-all-objects --batch-check='%(objectname)'", "git rev-list --objects HEAD"
    assert output_of(checkout, f"{every} | sort") == output_of(checkout, f"{reachable} | cut -d ' ' -f 1 | sort")
    for name in ("owner__name", "upstream", "base of", str(tmp_path / "cache")):
        assert output_of(checkout, f"grep -rlaF '{name}' .git || true") == ""
    repair = output_of(upstream, "git rev-parse repaired:src/a").strip()
    assert subprocess.run(["git", "cat-file", "-e", repair], cwd=checkout, check=False).returncode


def test_the_users_own_ignore_file_does_not_decide_what_is_in_a_patch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDIWORK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write_tree(tmp_path / "config", {"git/ignore": b"*.py\n"})
    checkout, bundle = tmp_path / "checkout", tmp_path / "owner__name.bundle"
    checkout.mkdir()
    commit = "git -c user.name=a -c user.email=a@b commit --quiet --allow-empty --message base"
    output_of(tmp_path, f"git init --quiet upstream; cd upstream; {commit}; git bundle create --quiet {bundle} HEAD")
    repositories.check_out(bundle, repositories.tree_of(bundle, ("HEAD",)), checkout)
    assert found(Session(checkout, tmp_path).run("touch repair.py")) == {"repair.py": "added"}


@pytest.mark.slow
@pytest.mark.usefixtures("plain_path")
@pytest.mark.parametrize("name", [FLASK, PYTEST])
def test_the_reference_solution_is_resolved_and_nothing_is_not(name: str) -> None:
    instance = real(name)
    gold, empty = graded(instance, instance.row["patch"]), graded(instance, "")
    assert gold.resolved, gold.log
    assert gold.version == "swebench 5.0.2"
    assert not empty.resolved


@pytest.mark.slow
@pytest.mark.usefixtures("plain_path")
def test_a_patch_is_resolved_only_if_it_breaks_no_test(tmp_path: Path) -> None:
    instance = real(FLASK)
    gold = f"git apply - <<'END'\n{instance.row['patch']}END\n"
    breaking = change(instance, tmp_path / "a", f"{gold} sed -i 's/def from_object/def from_objects/' {REPAIRED}")
    broken = graded(instance, breaking)
    assert not broken.resolved
    assert broken.tests["PASS_TO_PASS"]
    # Tests that the agent has weakened are put back.
    weakened = "def test_config_from_file_toml(): pass\n"
    cheating = change(instance, tmp_path / "b", f"printf '{weakened}' >> tests/test_config.py; echo > conftest.py")
    cheat = graded(instance, cheating)
    assert not cheat.resolved
    assert cheat.tests["FAIL_TO_PASS"] == instance.row["FAIL_TO_PASS"]


NEW_TEST = """diff --git a/test_a.py b/test_a.py
new file mode 100644
--- /dev/null
+++ b/test_a.py
@@ -0,0 +1 @@
+def test_a(): pass
"""


@pytest.mark.slow
@pytest.mark.usefixtures("plain_path")
def test_a_patch_of_sources_that_are_built_is_built_before_its_tests(tmp_path: Path) -> None:
    commit = "git add .; git -c user.name=a -c user.email=a@b commit --quiet --message base"
    bundle = f"mkdir {tmp_path}/repos; git bundle create --quiet {tmp_path}/repos/owner__name.bundle HEAD"
    base = output_of(tmp_path, f"git init --quiet x; cd x; echo 1 > a.c; {commit}; {bundle}; git rev-parse HEAD")
    building, passing = "grep -q '[12]' a.c; cp a.c built", 'grep -q 2 built && echo "PASSED test_a.py::test_a"'
    record = {**RECORD, "requirements": [], "install": [*RECORD["install"][:2], building], "test_command": passing}
    tests = {"test_patch": NEW_TEST, "FAIL_TO_PASS": ["test_a.py::test_a"], "PASS_TO_PASS": []}
    instance = loaded(tmp_path, record, {**ROW, **tests, "base_commit": base.strip()})
    assert graded(instance, change(instance, tmp_path / "a", "echo 2 > a.c")).resolved
    assert not graded(instance, change(instance, tmp_path / "b", "echo 2 > a.py")).resolved
    assert graded(instance, change(instance, tmp_path / "c", "echo 3 > a.c")).doubtful, "its installation fails"


@pytest.mark.parametrize(
    ("path", "needed"),
    [("sklearn/_fast.pyx.tp", True), ("setup.cfg", True), ("astropy/wcs/setup_package.py", True), ("a/b.py", False)],
)
def test_a_patch_of_modules_alone_needs_no_installation(path: str, needed: bool) -> None:
    assert grader.needs_installing(f"diff --git a/c.py b/c.py\n+1\ndiff --git a/{path} b/{path}\n+1\n") == needed


@pytest.mark.slow
@pytest.mark.usefixtures("plain_path")
def test_patches_that_hang_or_do_not_apply_are_not_resolved(tmp_path: Path) -> None:
    instance = real(FLASK)
    hanging = graded(instance, change(instance, tmp_path / "a", f"echo 'while True: pass' >> {REPAIRED}"), 5)
    assert (hanging.resolved, hanging.why) == (False, "the tests took more than 5 s")
    foreign = graded(instance, instance.row["patch"].replace("with open(filename)", "with open(name)"))
    assert (foreign.resolved, foreign.why) == (False, "the patch does not apply")
    # A full disk has the same effect, so that both ask whether the reference solution is still resolved.
    assert hanging.doubtful
    assert foreign.doubtful


@pytest.mark.slow
@pytest.mark.usefixtures("plain_path")
async def test_a_later_copy_of_the_repository_in_the_sandbox_makes_an_instance_unfit(tmp_path: Path) -> None:
    instance, copy = real(FLASK), tmp_path / "toolchain"
    (copy / "lib/site-packages/Flask-3.0.0.dist-info").mkdir(parents=True)
    await installations.install(subject_of(instance))
    async with new_sandbox("bubblewrap", read_only=[*SWEBENCH.mounts(instance), copy]) as (sandbox, workspace):
        installations.put(subject_of(instance), workspace)
        await sandbox.start()
        with pytest.raises(UnfitError, match=r"another version of the repository.*Flask-3\.0\.0"):
            await SWEBENCH.set_up(instance, sandbox)


@pytest.mark.parametrize(("is_system", "advice"), [(True, "of the system's packages.*uninstall it"), (False, "PATH=")])
async def test_a_later_copy_among_the_systems_packages_is_to_be_uninstalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_system: bool, advice: str
) -> None:
    (tmp_path / "copy/dist-packages/name-3.0.0.dist-info").mkdir(parents=True)
    if is_system:
        monkeypatch.setattr(benchmark, "SYSTEM", (tmp_path / "copy",))
    async with new_sandbox("bubblewrap", read_only=[tmp_path / "copy"]) as (sandbox, workspace):
        write_tree(workspace, {"x:.venv/bin/python": b"#!/bin/sh\n"})
        await sandbox.start()
        with pytest.raises(UnfitError, match=rf"name-3\.0\.0\.dist-info\. .*{advice}"):
            await SWEBENCH.set_up(Instance("owner__name-1", ROW), sandbox)


@pytest.mark.slow
@pytest.mark.usefixtures("plain_path")
async def test_a_search_for_later_copies_that_is_cut_short_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "SEARCH_SECONDS", 0.01)
    instance = real(FLASK)
    await installations.install(subject_of(instance))
    async with new_sandbox("bubblewrap", read_only=SWEBENCH.mounts(instance)) as (sandbox, workspace):
        installations.put(subject_of(instance), workspace)
        await sandbox.start()
        with pytest.raises(SandboxError, match="cannot be listed"):
            await SWEBENCH.set_up(instance, sandbox)


@pytest.mark.slow
@pytest.mark.usefixtures("plain_path")
@pytest.mark.parametrize(
    ("command", "error", "why"),
    [
        ("false", UnfitError, "reference solution is not resolved"),
        ("kill -9 $$", SandboxError, "received SIGKILL"),  # it is tried again, also when the run is resumed
    ],
)
async def test_an_instance_whose_own_solution_fails_is_unfit(command: str, error: type[Exception], why: str) -> None:
    instance = real(FLASK)
    row = {**instance.row, "recipe": {**instance.row["recipe"], "test_command": command}}
    impossible = replace(instance, row=row)
    await installations.install(subject_of(impossible))
    async with new_sandbox("bubblewrap", read_only=SWEBENCH.mounts(impossible)) as (sandbox, place):
        installations.put(subject_of(impossible), place)
        await sandbox.start()
        with pytest.raises(error, match=why):
            await SWEBENCH.set_up(impossible, sandbox)


@pytest.mark.slow
@pytest.mark.usefixtures("plain_path")
async def test_a_reference_solution_that_was_resolved_is_checked_again_for_other_tests() -> None:
    instance = real(FLASK)
    other = replace(instance, row={**instance.row, "FAIL_TO_PASS": ["tests/test_config.py::test_not_here"]})
    await installations.install(subject_of(instance))
    async with new_sandbox("bubblewrap", read_only=SWEBENCH.mounts(instance)) as (sandbox, place):
        installations.put(subject_of(instance), place)
        await sandbox.start()
        await SWEBENCH.set_up(instance, sandbox)
        with pytest.raises(UnfitError, match="reference solution is not resolved"):
            await SWEBENCH.set_up(other, sandbox)


PROBES = r"""
count() { echo "$1: $(cat | wc -l)"; }
git log --all --oneline | count history
git cat-file --batch-all-objects --batch-check='%(objectname)' | sort > /tmp/every
git rev-list --objects HEAD | cut -d ' ' -f 1 | sort > /tmp/reachable
comm -3 /tmp/every /tmp/reachable | count unreachable
grep -rlE 'flask-4992|pallets__flask' . "$HOME" 2> /dev/null | count instance
find / -path /proc -prune -o -print 2> /dev/null > /tmp/paths
grep -E '\.bundle$|/kit\.json$|/swe_bench' /tmp/paths | count data
grep /handiwork/repositories /tmp/paths | count repositories
grep /handiwork/installations /tmp/paths | count installations
grep -rl test_config_from_file_toml . | count tests
grep -rl 'text: bool = True' . | count repair
cat > /tmp/imported.py <<'END'
import os, flask
print("imports:", os.path.samefile(flask.__file__, "src/flask/__init__.py"))
END
python /tmp/imported.py
touch "$(python -c 'import werkzeug; print(werkzeug.__path__[0])')/a" 2>&1 | grep Read-only | count refused
"""
HIDDEN = ("unreachable", "instance", "data", "repositories", "installations", "tests", "repair")
SEEN = ("history: 1", *(f"{name}: 0" for name in HIDDEN), "imports: True", "refused: 1")


async def rolled_out(
    tmp_path: Path, name: str, *replies: dict[str, object], agent: str = "CodeActAgent", iterations: int = 100
) -> tuple[Result, str]:
    """The result of an agent with these replies, and its trajectory."""
    conditions = Conditions(
        benchmark="swebench",
        split="lite",
        data=str(folder(SWEBENCH)),
        agent=agent,
        model=script(tmp_path / "model.jsonl", *replies),
        user_model="scripted:",
        limits=Limits(iterations=iterations),
    )
    planned = await plan.new(registry.find("swebench"), conditions, InstanceSelection(ids=[name]), 1, no_status)
    results = await finished(tmp_path / "out", planned)
    result = results[name, 1]
    return result, (tmp_path / "out" / result.trajectory).read_text() if result.trajectory else ""


@pytest.mark.slow
@pytest.mark.usefixtures("plain_path")
async def test_an_agent_finds_neither_history_nor_repair_and_its_changes_are_scored(tmp_path: Path) -> None:
    repair = f"git apply - <<'END'\n{real(FLASK).row['patch']}END\n"
    further = "git commit --quiet --all --message repaired; rm -rf .git; printf '\\0' > data.bin"
    result, trajectory = await rolled_out(tmp_path, FLASK, bash(PROBES), bash(repair + further), finish())
    assert (result.outcome, result.score) == ("submitted", 1.0), (result.why, result.details)
    for seen in SEEN:
        assert seen in trajectory, trajectory
    assert "text: bool = True" in result.answer
    assert "data.bin" not in result.answer
    assert result.details["rule"] == "swebench 5.0.2"


@pytest.mark.slow
@pytest.mark.usefixtures("plain_path")
async def test_a_machine_that_gives_no_test_results_is_no_failure_of_the_agent(tmp_path: Path) -> None:
    instance, workspace = real(FLASK), tmp_path / "workspace"
    failing = replace(instance, row={**instance.row, "recipe": {**instance.row["recipe"], "test_command": "false"}})
    workspace.mkdir()
    for one in (instance, failing):
        await installations.install(subject_of(one))
    installations.put(subject_of(instance), workspace)
    config = SessionConfig(agent="CodeActAgent", model="scripted:", workspace=str(workspace))
    async with Store.open(tmp_path / "data") as store:
        session = await create(store, tmp_path / "data", config, lambda _: None, "task", llm=ScriptedLLM(()))
        async with session.hold_lease():
            sandbox = await session.sandbox()
            await sandbox.execute(CmdRunAction(command=f"echo 'import nothing_there' >> {REPAIRED}"))
            done = replace(rollout(instance, "", sandbox), files=session.files)
            score = await SWEBENCH.score(done)
            with pytest.raises(SandboxError, match="the reference solution is not resolved now: the machine failed"):
                await SWEBENCH.score(replace(done, instance=failing))
    # A patch that keeps the tests from running is the agent's failure.
    assert (score.value, score.details["why"]) == (0, "the tests' output has no results")


@pytest.mark.slow
@pytest.mark.usefixtures("plain_path")
async def test_an_agent_that_changes_nothing_scores_nothing(tmp_path: Path) -> None:
    result, _ = await rolled_out(tmp_path, FLASK, bash("touch .venv/a && touch src/flask/a.pyc"), finish())
    assert (result.outcome, result.score, result.answer) == ("submitted", 0.0, "")


@pytest.mark.campaign
@pytest.mark.usefixtures("plain_path")
def test_every_instance_is_resolved_by_its_reference_solution_and_not_by_nothing(tmp_path: Path) -> None:
    rows: list[str] = []
    unfit: list[str] = []
    for instance in instances(SWEBENCH):
        if reason := SWEBENCH.skipped(instance):
            rows.append(f"{instance.id} | skipped: {reason}")
            continue
        subject = subject_of(instance)
        environments.built(subject.recipe)
        asyncio.run(installations.install(subject))
        workspace = tmp_path / instance.id
        workspace.mkdir()
        began = time.monotonic()
        SWEBENCH.prepare(instance, workspace)
        seconds = time.monotonic() - began
        gold, empty = graded(instance, instance.row["patch"]), graded(instance, "")
        rows.append(f"{instance.id} | {seconds:.1f} s | gold {gold.resolved} {gold.why} | empty {empty.resolved}")
        if empty.resolved or (not gold.resolved and instance.id not in FLAKY):
            unfit.append(rows[-1])
    print("\n".join(rows))  # noqa: T201 - the table is what this is run for
    assert not unfit
    assert sum("gold True" in row for row in rows) >= 60
