"""Benchmarks whose tasks change the system: in an image the agent is root of a machine that vanishes afterwards."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from handiwork.evals import registry
from handiwork.evals.benchmark import DataError, UnfitError
from handiwork.evals.running import manifest, plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.limits.limits import ResourceLimits
from scripts.harness.images import image
from tests.cli.program import bash, finish
from tests.evals.rollouts import instances, needs_benchdata, prepared, sample, some_or_all
from tests.evals.runs import ADDING, finished, no_status, script, sums
from tests.evals.test_agentbench_os import AGENTBENCH, SYSTEM, UNSOLVABLE, WRITER, do, loaded, scored, solved
from tests.hostile.probes import CALLS, SERVER, SOCKETS, told
from tests.sandbox.helpers import Box, output, run

pytestmark = pytest.mark.usefixtures("docker_daemon")

USER = {
    "description": "Let jack own /usr/file.",
    "create": {"init": "useradd -m jack && touch /usr/file"},
    "evaluation": {"check": "su jack -c 'echo mine > /usr/file'", "example": "chown jack /usr/file"},
}


async def machine(box: Box, **options: Any) -> Sandbox:
    box.image = image("machine")
    sandbox = box.make(writable_root=True, **options)
    await sandbox.start()
    return sandbox


async def test_its_root_changes_the_system_which_is_as_before_at_the_next_start(box: Box) -> None:
    sandbox = await machine(box)
    assert await output(sandbox, "id -u; echo $HOME; touch /usr/mine && echo yes > README") == "0\n/root"
    assert await output(sandbox, "useradd -m jack && touch ~jack/it && chown jack ~jack/it && chmod 600 ~jack/it") == ""
    assert await output(sandbox, "su jack -c 'echo his > ~/it; id -un'; cat ~jack/it") == "jack\nhis"
    await sandbox.start()
    assert await output(sandbox, "cat README; ls /usr/mine ~jack 2>&1 | wc -l; whoami") == "yes\n2\nroot"


async def test_what_its_root_may_not_do(box: Box) -> None:
    sandbox = await machine(box)
    status = await output(sandbox, "grep -E '^(Cap(Eff|Prm|Bnd|Inh|Amb)|NoNewPrivs)' /proc/self/status")
    held = dict(line.split(":\t") for line in status.splitlines())
    # In the kernel's order: chown, dac_override, fowner, fsetid, kill, setgid, setuid.
    root = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7))
    assert {int(held[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")} == {root}
    assert held["NoNewPrivs"] == "1"
    assert await output(sandbox, "ls /sys/class/net") == "lo"
    assert (await run(sandbox, "mknod /tmp/disk b 8 0 || mount -t tmpfs none /mnt")).exit_code != 0
    assert (await run(sandbox, "touch /opt/handiwork/mine")).exit_code != 0
    made = {int(family) for family, (answer, _) in (await told(sandbox, SOCKETS)).items() if answer is None}
    assert made == {1, 2, 10, 16}
    assert set((await told(sandbox, CALLS)).values()) == {"Operation not permitted"}
    answers = await told(sandbox, SERVER)
    assert {name for name, answer in answers.items() if answer == "done"} <= {"fd", "fdinfo", "oom_score_adj"}


async def test_its_own_files_count_against_the_limit_of_the_disk(box: Box) -> None:
    sandbox = await machine(box, limits=ResourceLimits(disk=64 << 20))
    written = await run(sandbox, "head -c 200M /dev/zero > /usr/large; sleep 20; echo done")
    assert "disk limit" in written.content + (await run(sandbox, "echo next")).content


async def test_without_the_option_the_system_is_read_only(box: Box) -> None:
    box.image = image("machine")
    sandbox = box.make()
    await sandbox.start()
    assert "Read-only file system" in (await run(sandbox, "touch /usr/mine")).content


@pytest.mark.parametrize("record", [SYSTEM, WRITER, UNSOLVABLE, USER])
async def test_a_task_that_changes_the_system_is_set_up(record: Mapping[str, Any], tmp_path: Path) -> None:
    (instance,) = loaded(tmp_path, record)
    async with prepared(AGENTBENCH, instance, tmp_path, image("machine")) as sandbox:
        if record is USER:
            assert await scored(instance, "Done.", sandbox) == 0
            await do(sandbox, "chown jack /usr/file")
            assert await scored(instance, "Done.", sandbox) == 1


async def test_a_run_in_an_image_has_its_id_in_the_manifest_and_uses_it(tmp_path: Path) -> None:
    data, name = sums(tmp_path / "sums", "sum"), image("machine")
    model = script(tmp_path / "script", bash("touch /usr/mine; cat /etc/debian_version"), finish("4"))
    conditions = Conditions(
        benchmark=ADDING,
        split="test",
        data=str(data),
        agent="CodeActAgent",
        model=model,
        user_model=model,
        sandbox="docker",
        image=name,
    )
    planned = await plan.new(registry.find(ADDING), conditions, InstanceSelection(), 1, no_status)
    inspect = ["docker", "image", "inspect", "--format", "{{.Id}}", name]
    assert planned.manifest.image == subprocess.run(inspect, capture_output=True, text=True, check=True).stdout.strip()
    (result,) = (await finished(tmp_path / "out", planned)).values()
    assert result.score == 1, result
    seen = (tmp_path / "out" / result.trajectory).read_text()
    assert "Read-only file system" in seen
    assert "12." in seen
    other = planned.manifest.model_copy(update={"image": "sha256:0"})
    manifest.write(tmp_path / "out", other)
    with pytest.raises(DataError, match="is not the one that the run began with"):
        await plan.resume(tmp_path / "out", no_status)


@needs_benchdata
@pytest.mark.timeout(3000)
@some_or_all
@pytest.mark.parametrize("split", AGENTBENCH.splits)
async def test_real_tasks_are_scored_by_their_own_solutions(split: str, at_most: int, tmp_path: Path) -> None:
    outcomes: dict[str, list[str]] = {"right": [], "wrong": [], "unfit": []}
    for instance in sample([one for one in instances(AGENTBENCH, split) if not AGENTBENCH.skipped(one)], at_most):
        place = tmp_path / instance.id
        place.mkdir()
        try:
            async with prepared(AGENTBENCH, instance, place, image("machine")) as sandbox:
                outcomes["right" if await solved(instance, sandbox) else "wrong"].append(instance.id)
        except UnfitError as error:
            outcomes["unfit"].append(f"{instance.id}: {error}")
    assert len(outcomes["right"]) > len(outcomes["unfit"]), outcomes
    assert not outcomes["wrong"], outcomes
