"""``handiwork eval`` as researchers use it: run, killed, resumed, reported, compared, reproduced."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from urllib.request import Request, urlopen

import pytest

from handiwork.evals.running import underway
from tests.cli.program import HANDIWORK, PATIENCE, Program, bash, finish
from tests.evals.runs import ADDING, sums

pytestmark = pytest.mark.slow


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return sums(tmp_path / "sums", *(f"sum-{number}" for number in range(6)))


def flags(program: Program, data: Path, out: Path, *replies: dict[str, object]) -> list[str]:
    model = program.script(*(replies or (bash("cat sum.txt"), finish("4"))))
    return ["eval", "run", ADDING, "--data", str(data), "--model", model, "--out", str(out)]


def test_the_benchmarks_are_listed_with_what_they_need(program: Program) -> None:
    listed = [json.loads(line) for line in program("eval", "list", "--json").stdout.splitlines()]
    names = {one["name"] for one in listed}
    assert {"agentbench_os", "bird", "eda", "everyday", "gaia", "gorilla_apibench", "gpqa"} < names
    assert {"humanevalfix", "mint", "proofwriter", "swebench", "toolqa"} < names
    assert all(one["size"] and one["source"] and one["metric"] and one["licence"] for one in listed)
    assert "set HF_TOKEN" in program("eval", "list").stdout


def test_a_benchmark_whose_files_upstream_does_not_offer_is_not_said_to_be_downloaded(
    program: Program, tmp_path: Path
) -> None:
    lines = program("eval", "list", "--data", str(tmp_path)).stdout.splitlines()
    needs = {line.split()[0]: lines[number + 2].strip() for number, line in enumerate(lines) if line[:1].strip()}
    assert needs["swebench"] == needs["biocoder"] == "not downloaded: get its files, and give --data"
    assert needs["mint"] == "downloaded on the first run"


def test_a_run_of_an_agent_that_is_a_file_has_a_folder_beside_the_others(
    program: Program, data: Path, tmp_path: Path
) -> None:
    """The agent's path is not part of the folder's: reports find the arms beside it."""
    agent = tmp_path / "own.md"
    agent.write_text("---\nname: Own\ndescription: Adds.\ntools: [bash]\n---\nAdd the numbers.\n")
    *began, _, _ = flags(program, data, tmp_path)  # without --out
    done = program(*began, "--limit", "1", "--agent", str(agent))
    assert done.returncode == 0, done.stderr
    (folder,) = (program.workspace / "evals").iterdir()
    assert folder.name.startswith("adding-test-own-2")
    assert (folder / "manifest.json").exists()


def test_a_run_ends_in_a_report(program: Program, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = program(*flags(program, data, out), "--limit", "3", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert "100.0 %" in done.stdout
    assert {"report.md", "report.json", "report.html", "manifest.json", "output.jsonl"} <= {
        p.name for p in out.iterdir()
    }
    same = json.loads(program("eval", "compare", str(out), str(out), "--json").stdout)
    assert (same["p"], same["better"], same["worse"]) == (1.0, [], [])


@pytest.mark.parametrize("out", [(), ("--out", "runs/first")])
def test_a_run_is_measured_in_a_fresh_folder_and_named_relative_to_it(
    program: Program, data: Path, out: tuple[str, ...]
) -> None:
    """Absolute, relative or not named: the rollouts' workspaces are found, and it is run again under its conditions."""
    model = program.script(bash("cat sum.txt"), finish("4"))
    done = program("eval", "run", ADDING, "--data", "../sums", "--model", model, "--ids", "sum-1, sum-4", *out)
    assert done.returncode == 0, done.stderr
    assert "100.0 %" in done.stdout
    found = program.workspace / "runs/first" if out else next((program.workspace / "evals").iterdir())
    again = program("eval", "reproduce", str(found.relative_to(program.workspace)), "--out", "again", "--json")
    assert again.returncode == 0, again.stderr
    assert "100.0 %" in (program.workspace / "again/report.md").read_text()
    compared = json.loads(again.stdout)
    assert (compared["difference"]["mean"], compared["difference"]["n"], compared["p"]) == (0.0, 2, 1.0)


def test_a_benchmark_may_be_named_below_the_home_folder(program: Program, data: Path) -> None:
    (program.folder / "own.py").write_text(Path(ADDING).read_text())
    model = program.script(bash("cat sum.txt"), finish("4"))
    where = ("--data", str(data), "--model", model, "--ids", "sum-1", "--out", "run")
    done = program("eval", "run", "~/own.py", *where)
    assert done.returncode == 0, done.stderr
    conditions = json.loads((program.workspace / "run/manifest.json").read_text())["conditions"]
    assert conditions["benchmark"] == str(program.folder / "own.py")


def test_a_run_is_reproduced_with_its_data_in_another_place(program: Program, data: Path, tmp_path: Path) -> None:
    out, bench = tmp_path / "out", tmp_path / "bench"
    assert program(*flags(program, data, out), "--ids", "sum-1").returncode == 0
    bench.mkdir()
    moved = data.rename(bench / "adding")
    again = "eval", "reproduce", str(out), "--json", "--out"
    lost = program(*again, "lost")
    assert (lost.returncode, "see this file and docs/benchmarks.md, and give --data" in lost.stderr) == (2, True)
    found = program(*again, "found", HANDIWORK_BENCHDATA=str(bench))
    named = program(*again, "named", "--data", str(moved))
    for done in (found, named):
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["difference"]["n"] == 1


def test_a_run_that_loses_rollouts_or_measures_nothing_does_not_exit_0(program: Program, tmp_path: Path) -> None:
    ids = ["ungradable", "sum-1"]
    model = program.script(bash("cat sum.txt"), finish("4"))
    run = ["eval", "run", ADDING, "--data", str(sums(tmp_path / "broken", *ids)), "--model", model]
    lost = program(*run, "--out", "lost")
    assert lost.returncode == 4
    assert "1 of its rollouts failed through no fault of the agent: see" in lost.stderr
    assert "run --resume" in lost.stderr
    resumed = program("eval", "run", "--resume", "lost")
    assert (resumed.returncode, "1 of its rollouts failed" in resumed.stderr) == (4, True)
    again = program("eval", "reproduce", "lost", "--out", "again")
    assert (again.returncode, "1 of its rollouts failed" in again.stderr) == (4, True)
    assert "on 1 instances that both runs measured" in again.stdout
    nothing = program(*run, "--out", "nothing", "--ids", "ungradable")
    assert (nothing.returncode, "the run measured nothing" in nothing.stderr) == (4, True)


@pytest.mark.parametrize(("colours", "red"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_run_that_measures_nothing_says_so_in_red(
    program: Program, tmp_path: Path, colours: dict[str, str], red: bool
) -> None:
    data = sums(tmp_path / "broken", "ungradable")
    model = program.script(bash("cat sum.txt"), finish("4"))
    with program.at_terminal("eval", "run", ADDING, "--data", str(data), "--model", model, **colours) as terminal:
        said = terminal.until("the run measured nothing")
        assert ("\x1b[31mhandiwork: the run measured nothing" in said) == red
        assert terminal.exit_code() == 4


def test_a_run_that_is_killed_goes_on_where_it_was(program: Program, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    slow = flags(program, data, out, {**bash("cat sum.txt"), "delay": 0.3}, finish("4"))
    process = Popen([HANDIWORK, *slow], env=program.environment, stderr=DEVNULL)
    results, end = out / "output.jsonl", time.monotonic() + PATIENCE
    while not results.exists() or len(results.read_text().splitlines()) < 2:
        assert time.monotonic() < end
        time.sleep(0.02)
    process.kill()
    process.wait()
    before = results.read_text().splitlines()
    for extra, named in ((["--model", "openai:gpt-5"], "--model"), ([ADDING], "BENCHMARK")):
        refused = program("eval", "run", "--resume", str(out), *extra)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"{named} does not go with --resume" in refused.stderr
    resumed = program("eval", "run", "--resume", str(out))
    assert resumed.returncode == 0, resumed.stderr
    after = results.read_text().splitlines()
    assert after[: len(before)] == before
    assert sorted(json.loads(line)["id"] for line in after) == [f"sum-{number}" for number in range(6)]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_the_cost_of_a_rollout_that_is_interrupted_with_its_run_counts(
    program: Program, data: Path, tmp_path: Path, end: signal.Signals
) -> None:
    out = tmp_path / "out"
    command = flags(program, data, out, bash("cat sum.txt", cost=0.5), {**finish("4"), "delay": 2 * PATIENCE})
    process, deadline = (
        Popen([HANDIWORK, *command], env=program.environment, stderr=DEVNULL),
        time.monotonic() + PATIENCE,
    )
    while not asyncio.run(underway.costs(out)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(end)
    process.wait()
    resumed = program("eval", "run", "--resume", str(out), "--max-cost", "0.5")
    assert (resumed.returncode, "has spent 0.50 USD, its --max-cost" in resumed.stderr) == (3, True)
    (line,) = (out / "output.jsonl").read_text().splitlines()
    assert {"id": "sum-0", "outcome": "interrupted", "score": None, "cost": 0.5}.items() <= json.loads(line).items()
    assert not any((out / "underway").glob("*"))


def test_trials_can_be_sampled(program: Program, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = program(*flags(program, data, out), "--ids", "sum-1", "--trials", "2", "--temperature", "0.7")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["sampling"] == "as the agent asks: at a temperature of 0.7 or more"
    trajectories = sorted((out / "trajectories").iterdir())
    started = [json.loads(file.read_text().splitlines()[0])["settings"] for file in trajectories]
    assert [one["temperature"] for one in started] == [0.7, 0.7]


def test_sandbox_and_network_are_those_of_a_run_and_are_kept(program: Program, data: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "out", tmp_path / "again"
    program.settings.parent.mkdir(parents=True, exist_ok=True)
    program.settings.write_text('allow_net = ["pypi"]\n')
    given = flags(program, data, out), "--ids", "sum-1", "--sandbox", "none", "--allow-net", "example.org"
    done = program(*given[0], *given[1:], "--allow-net", "127.0.0.2:81")
    assert done.returncode == 0, done.stderr
    assert program("eval", "reproduce", str(out), "--out", str(again)).returncode == 0
    run = json.loads((out / "report.json").read_text())["run"]
    assert (run["sandbox"], run["image"], run["image id"]) == ("none", None, "")
    assert run["allow_net"] == ["example.org", "127.0.0.2:81"]
    assert "| allow\\_net | example.org, 127.0.0.2:81 |" in (out / "report.md").read_text()
    for folder in (out, again):
        (trajectory,) = (folder / "trajectories").iterdir()
        settings = json.loads(trajectory.read_text().splitlines()[0])["settings"]
        assert (settings["sandbox"], settings["allow_net"]) == ("none", ["example.org", "127.0.0.2:81"])
    assert program(*flags(program, data, tmp_path / "third"), "--ids", "sum-1").returncode == 0
    conditions = json.loads((tmp_path / "third/manifest.json").read_text())["conditions"]
    assert (conditions["sandbox"], conditions["allow_net"]) == ("bubblewrap", ["pypi"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", ADDING, "--sandbox", "docker"], "the sandbox docker needs an image: add --image NAME"),
        (["run", ADDING, "--sandbox", "cage"], "--sandbox: input should be 'bubblewrap', 'docker' or 'none', not"),
        (["run", ADDING, "--sandbox", "none", "--image", "debian:12"], "the image debian:12 needs the sandbox docker"),
        (["run", ADDING, "--allow-net", "http://x"], "--allow-net: "),
        (["run", ADDING, "--feedback-model", "openai:x"], "--feedback-model is for mint: adding has no rule"),
        (["run"], "BENCHMARK is missing"),
        (["run", "nothing"], "there is no benchmark 'nothing': there are agentbench_os"),
        (["run", ADDING, "--split", "dev"], "adding has no split 'dev': it has test"),
        (["run", ADDING, "--data", "/nowhere"], "/nowhere has no sums.jsonl: --data must name a folder"),
        (
            ["run", "multi-swe-bench", "--split", "c", "--data", "/nowhere"],
            "a folder with the files of multi-swe-bench, in the form that docs/benchmarks.md gives",
        ),
        (["run", "gpqa"], "is not freely available"),
        (["report", "/nowhere"], "/nowhere has no manifest.json: it is no run's folder"),
    ],
)
def test_what_is_wrong_is_said_at_once(program: Program, arguments: list[str], said: str) -> None:
    done = program("eval", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_is_served_to_the_browser(program: Program, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert program(*flags(program, data, out), "--limit", "1").returncode == 0
    command = [HANDIWORK, "eval", "view", str(out)]
    with Popen(command, env=program.environment, stdout=PIPE, text=True) as viewer:
        assert viewer.stdout is not None
        link = viewer.stdout.readline().strip()
        address, _, token = link.partition("/eval?token=")
        with urlopen(Request(f"{address}/api/evaluation", headers={"authorization": f"Bearer {token}"})) as answer:
            assert [row["id"] for row in json.load(answer)["rollouts"]] == ["sum-0"]
        viewer.send_signal(signal.SIGINT)
    missing = program("eval", "view", str(tmp_path))
    assert missing.returncode == 2
    assert f"it is no run's folder; name one of the runs in it: {out}" in " ".join(missing.stderr.split())
