"""Images that have little in common, made on this machine without a registry."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from handiwork.paths import cache_dir
from scripts.harness.packages import unpacked

SHELL_TOOLS = ("base-files", "bash", "coreutils", "grep", "procps", "sed")


@dataclass(frozen=True)
class Recipe:
    """What is in an image, of which Debian release, and what its Dockerfile would say besides."""

    suite: str
    packages: tuple[str, ...] = SHELL_TOOLS
    changes: Sequence[str] = ()


RECIPES = {
    "bookworm": Recipe("bookworm"),
    "bullseye": Recipe("bullseye"),
    "trixie": Recipe("trixie"),
    # Musl, and all programs links to one; no bash, no glibc, no /tmp.
    "musl": Recipe("bookworm", ("musl", "busybox-static")),
    "odd": Recipe(
        "bookworm",
        (*SHELL_TOOLS, "libeatmydata1", "python3-minimal"),
        (
            'ENTRYPOINT ["/bin/false"]',
            'CMD ["never"]',
            "ENV LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libeatmydata.so LD_LIBRARY_PATH=/usr/lib/nowhere",
            "ENV PYTHONHOME=/usr/nowhere PYTHONPATH=/usr/nowhere PATH=/usr/bin:/bin TMPDIR=/nowhere HOME=/nowhere",
            "ENV POSIXLY_CORRECT=1 SHELLOPTS=posix",
            "USER 4321:4321",
            "WORKDIR /odd",
            "VOLUME /var/lib/odd",
        ),
    ),
    # A machine whose root adds users, changes their files and becomes them, with AgentBench's programs.
    "machine": Recipe(
        "bookworm",
        (
            *(*SHELL_TOOLS, "base-passwd", "dash", "debianutils", "diffutils", "findutils", "gzip", "hostname"),
            *("libc-bin", "libpam-modules", "libpam-runtime", "login", "mawk", "passwd", "tar", "util-linux"),
            *("curl", "git", "python3", "tree", "unzip", "vim-tiny", "wget", "zip"),
        ),
    ),
}


def image(name: str) -> str:
    """The name by which Docker has the image of this recipe; it is made if it is not there."""
    recipe = RECIPES[name]
    tag = f"handiwork-test-{name}:{hashlib.sha256(f'{recipe}'.encode()).hexdigest()[:12]}"
    if subprocess.run(["docker", "image", "inspect", tag], capture_output=True, check=False).returncode:
        _make(name, recipe, tag)
    return tag


def _make(name: str, recipe: Recipe, tag: str) -> None:
    root = unpacked(recipe.packages, cache_dir() / "test-docker", recipe.suite)
    if name == "musl":
        _link_applets(root)
    if name == "machine":
        _make_accounts(root)
    changes = [f"--change={change}" for change in recipe.changes]
    packing = ["tar", "-c", "--owner=0", "--group=0", "-C", root, "--exclude=./usr/share/doc", "."]
    with subprocess.Popen(packing, stdout=subprocess.PIPE) as archive:
        subprocess.run(["docker", "import", *changes, "-", tag], stdin=archive.stdout, capture_output=True, check=True)
    assert archive.returncode == 0


def _link_applets(root: Path) -> None:
    busybox = root / "bin/busybox"
    for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
        link = root / "bin" / applet
        if not link.exists():
            link.symlink_to("busybox")


def _make_accounts(root: Path) -> None:
    """Do what the packages' own scripts would: accounts, the rules by which users are let in, folders and links."""
    for folder in ("usr/local/bin", "usr/local/sbin", "srv"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name in ("passwd", "group"):
        (root / "etc" / name).write_text((root / f"usr/share/base-passwd/{name}.master").read_text())
    accounts = (root / "etc/passwd").read_text().splitlines()
    (root / "etc/shadow").write_text("".join(f"{line.partition(':')[0]}:*:19000:0:99999:7:::\n" for line in accounts))
    for kind in ("auth", "account", "password", "session"):
        (root / f"etc/pam.d/common-{kind}").write_text(f"{kind} required pam_unix.so\n")
    for link, program in {"usr/bin/awk": "mawk", "usr/bin/vim": "vim.tiny", "bin/sh": "dash"}.items():
        if not (root / link).is_symlink():
            (root / link).symlink_to(program)
