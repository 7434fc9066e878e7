"""A Docker daemon for tests: the one that runs, or one of our own from Debian packages, nothing being installed."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from handiwork.paths import cache_dir
from scripts.harness.packages import unpacked

DEADLINE = 120.0
DAEMON = ["docker.io", "containerd", "runc", "tini", "libnetfilter-conntrack3", "libnfnetlink0"]


def answers() -> bool:
    """Whether a daemon can be used."""
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False, timeout=60).returncode == 0


@contextmanager
def _programs(name: str) -> Generator[tuple[Path, pytest.MonkeyPatch]]:
    """Have Docker's programs on the PATH, and for as long a folder of the cache for oneself."""
    if os.geteuid() != 0:
        pytest.skip("only root can start a Docker daemon")
    home = cache_dir() / name
    home.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch, open(home / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        root = unpacked(DAEMON, home)
        patch.setenv("PATH", f"{os.environ['PATH']}:{root}/usr/bin:{root}/usr/sbin")
        yield home, patch


@contextmanager
def daemon() -> Generator[None]:
    """Have `docker` and a daemon in the environment; one of our own is ended afterwards, its images are kept."""
    if answers():
        yield
        return
    with _programs("test-docker") as (home, patch), tempfile.TemporaryDirectory(prefix="hw-docker-") as folder:
        patch.setenv("DOCKER_HOST", f"unix://{folder}/docker.sock")
        process = _start(Path(folder), home)
        try:
            _wait(process, Path(folder))
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE)


@contextmanager
def daemon_elsewhere(hidden: Sequence[Path]) -> Generator[str]:
    """Have a daemon of our own that is reached over TCP and does not see what is in the directories ``hidden``.

    What is given is a unix socket at which it is reached too.
    """
    with _programs("test-docker-elsewhere") as (home, patch):
        with socket.create_server(("127.0.0.1", 0)) as free:
            patch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{free.getsockname()[1]}")
        # What lies in one that is covered is not there any more to be covered itself.
        outer = [path for path in hidden if not any(path.is_relative_to(one) and path != one for one in hidden)]
        cover = "".join(f"mount -t tmpfs none {path} && " for path in outer)
        # Its runtime would look for files of its own there.
        in_its_own = ["env", "--unset=XDG_RUNTIME_DIR", "unshare", "--mount", "sh", "-c", f'{cover}exec "$@"', "sh"]
        with tempfile.TemporaryDirectory(prefix="hw-docker-", dir="/run") as folder:
            also = f"unix://{folder}/docker.sock"
            process = _start(Path(folder), home, in_its_own, ["--tls=false", "--host", also])
            try:
                _wait(process, Path(folder))
                yield also
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(DEADLINE)


def _start(
    folder: Path, home: Path, before: Sequence[str] = (), options: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    with open(folder / "log", "wb") as log:
        return subprocess.Popen(
            [
                # It does not outlive the tests, even if they are killed.
                *(*before, "setpriv", "--pdeathsig", "TERM", "dockerd", "--host", os.environ["DOCKER_HOST"]),
                *("--data-root", home / "data", "--exec-root", folder / "exec", "--pidfile", folder / "pid"),
                *("--bridge=none", "--iptables=false", "--ip6tables=false", *options),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait(process: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + DEADLINE
    while not answers():
        if process.poll() is not None or time.monotonic() > until:
            pytest.fail(f"dockerd does not start:\n{(folder / 'log').read_text(errors='replace')[-3000:]}")
        time.sleep(0.1)
