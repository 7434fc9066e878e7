"""Files stay the calling user's, no daemon is reached from inside, and what is missing is said."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from handiwork.errors import SandboxError
from handiwork.sandbox.docker import cli as docker_cli
from handiwork.workspace.layers import git_layers, upper_dir
from scripts.harness.images import image
from tests.sandbox.helpers import Box, git, output, run
from tests.without_home import run_without_home

NOBODY = 12345


@pytest.fixture
def in_docker(docker_daemon: None, box: Box) -> Box:
    box.image = image("bookworm")
    return box


async def test_files_belong_to_the_calling_user(in_docker: Box) -> None:
    sandbox = in_docker.in_place()
    await sandbox.start()
    await output(sandbox, "echo x > src/new; mkdir -p a/b; echo y > a/b/c; echo more >> README")
    await sandbox.close()
    for path in ("src/new", "a", "a/b/c", "README"):
        found = (in_docker.project / path).stat()
        assert (found.st_uid, found.st_gid) == (os.getuid(), os.getgid()), path


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of another user")
async def test_where_root_works_on_anothers_files_they_stay_theirs(in_docker: Box) -> None:
    for path in (in_docker.project, *in_docker.project.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    sandbox = in_docker.in_place()
    await sandbox.start()
    assert await output(sandbox, "id -u; echo x > new; echo more >> README") == str(NOBODY)
    await sandbox.close()
    for path in ("new", "README"):
        assert (in_docker.project / path).stat().st_uid == NOBODY


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files that another user cannot remove")
async def test_after_a_deletion_the_session_s_folder_can_be_removed_by_its_user(
    in_docker: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = in_docker.make()
    await sandbox.start()
    await output(sandbox, "rm README")
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    await sandbox.close()
    (layers,) = in_docker.session_dir.glob("overlay/work")
    assert list(layers.iterdir()) == []


async def test_in_place_the_repository_is_read_and_what_the_agent_changes_in_it_is_kept_apart(in_docker: Box) -> None:
    before = git(in_docker.project, "config", "--list", "--local")
    sandbox = in_docker.in_place()
    await sandbox.start()
    await output(sandbox, "echo evil >> .git/config; echo x > .git/hooks/pre-commit")
    assert (await run(sandbox, "mv .git elsewhere")).exit_code != 0
    await sandbox.close()
    assert git(in_docker.project, "config", "--list", "--local") == before
    assert (git_layers(in_docker.session_dir) / "upper/hooks/pre-commit").exists()


async def test_changes_are_there_again_when_it_is_started_again(in_docker: Box) -> None:
    first = in_docker.make()
    await first.start()
    await output(first, "echo kept > kept; echo home > ~/kept; rm README")
    await first.close()
    second = in_docker.make()
    await second.start()
    assert (await output(second, "cat kept ~/kept; ls README 2>/dev/null || echo gone")).split() == [
        *("kept", "home", "gone")
    ]
    assert not (upper_dir(in_docker.session_dir) / "README").is_file()


async def test_the_volumes_of_an_image_are_read_only(in_docker: Box) -> None:
    base, in_docker.image, container = in_docker.image, "handiwork-test-volumes", "handiwork-test-volumes"
    making = ["bash", "-c", "mkdir -m 777 /data && echo kept > /data/file && chmod 666 /data/file"]
    declaring = ["--change=VOLUME /data", "--change=VOLUME /tmp"]
    try:
        subprocess.run(["docker", "run", "--network=none", "--name", container, base, *making], check=True)
        subprocess.run(["docker", "commit", *declaring, container, in_docker.image], check=True, capture_output=True)
        sandbox = in_docker.make()
        await sandbox.start()
        assert await output(sandbox, "cat /data/file") == "kept"
        for attempt in ("echo x > /data/file", "touch /data/new"):
            assert "Read-only file system" in (await run(sandbox, attempt)).content
        assert await output(sandbox, "echo x > /tmp/file; cat /tmp/file") == "x"
        await sandbox.close()
        assert "handiwork-" not in subprocess.check_output(["docker", "volume", "ls"], text=True)
    finally:
        subprocess.run(["docker", "rm", container], check=False, capture_output=True)
        subprocess.run(["docker", "image", "rm", in_docker.image], check=False, capture_output=True)


async def test_proxies_of_the_users_settings_are_not_given_to_containers(
    in_docker: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings").mkdir()
    proxy = '{"proxies": {"default": {"httpProxy": "http://me:secret@proxy:1", "noProxy": "secret"}}}'
    (tmp_path / "settings/config.json").write_text(proxy)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "settings"))
    sandbox = in_docker.make()
    await sandbox.start()
    assert await output(sandbox, "env | grep -c secret || true") == "0"


@pytest.mark.parametrize("image_name", [None, "any"])
async def test_the_socket_of_a_daemon_is_never_shown(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image_name: str | None
) -> None:
    box.image = image_name
    (tmp_path / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as daemon:
        monkeypatch.chdir(tmp_path)
        daemon.bind("run/docker.sock")
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/run/docker.sock")
        for shown in (tmp_path / "run", tmp_path / "run/docker.sock"):
            with pytest.raises(SandboxError, match="makes anyone root"):
                await box.make(read_only=[shown]).start()


async def test_without_docker_it_is_said_what_to_install(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    box.image = "any"
    with pytest.raises(SandboxError, match=r"no program `docker`.*apt-get install docker\.io"):
        await box.make().start()


async def test_a_daemon_that_does_not_answer_is_named(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    box.image = "any"
    with pytest.raises(SandboxError, match=r"no Docker daemon answers \(DOCKER_HOST is tcp://127\.0\.0\.1:1\)"):
        await box.make().start()


def test_a_user_without_a_home_has_no_context_of_docker(tmp_path: Path) -> None:
    script = "import asyncio; from handiwork.sandbox.docker.cli import is_elsewhere; print(asyncio.run(is_elsewhere()))"
    assert run_without_home(script, tmp_path) == "False\n"


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", "systemctl start docker"),
        ("permission denied while trying to connect to the Docker daemon socket", "usermod -aG docker"),
        ("docker: Error: bind source path does not exist: /x.\n\nRun 'docker run --help' for more", "runs on it"),
    ],
)
def test_what_docker_says_is_told_with_what_to_do(said: str, advice: str) -> None:
    told = docker_cli.explained(said)
    assert advice in told
    assert "--help" not in told


@pytest.mark.parametrize("name", ["", "--privileged", "two words"])
async def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(SandboxError, match="is no name of an image"):
        await docker_cli.image_of(name, lambda _: None)


async def test_an_image_that_cannot_be_had_is_said_after_the_phases(in_docker: Box) -> None:
    phases: list[str] = []
    in_docker.image = "localhost:1/nowhere/nothing"
    with pytest.raises(SandboxError, match="there is no image localhost:1/nowhere/nothing here, and it cannot be pul"):
        await in_docker.make(on_status=phases.append).start()
    assert phases == ["pulling the image localhost:1/nowhere/nothing"]


async def test_the_phases_of_a_start_are_told(in_docker: Box) -> None:
    phases: list[str] = []
    await in_docker.make(on_status=phases.append).start()
    assert phases == [f"starting {in_docker.image}"]


async def test_a_session_whose_image_has_changed_says_so(in_docker: Box) -> None:
    phases: list[str] = []
    in_docker.image = "handiwork-test-moving"
    try:
        for name in ("bookworm", "bookworm", "musl"):
            subprocess.run(["docker", "tag", image(name), in_docker.image], check=True)
            sandbox = in_docker.make(on_status=phases.append)
            await sandbox.start()
            await sandbox.close()
    finally:
        subprocess.run(["docker", "image", "rm", in_docker.image], check=True, capture_output=True)
    (changed,) = (phase for phase in phases if not phase.startswith("starting"))
    assert changed.startswith("the image handiwork-test-moving is not the one that this session had: it was ")
