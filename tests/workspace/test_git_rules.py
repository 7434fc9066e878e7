"""What is copied depends on git's rules, which are read without git: git itself must agree."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handiwork.workspace.git.patterns import Patterns
from handiwork.workspace.selection import select
from tests.workspace.trees import git, write_tree

TOKENS = [
    *[b"a", b"b", b"ab", b"*", b"?", b"**", b"/", b"/", b"[a-c]", b"[!a]", b"[^b]", b"[]a]", b"\\*", b"\\ ", b" "],
    *["é".encode(), b"[[:alpha:]]", b"[a-", b"\\", b"[\\]]", b"-", b".", b"/**/", b"**/", b"[a/b]", b"\\/", b"!"],
    *[b"#", b"[:", b"]", b"[", b"[[:bad:]]", b"\r", b"[--0]", b"[b-a]", b"***", b"[[:a]"],
]
NAMES = [
    b"a",
    b"b",
    b"ab",
    b"c",
    "é".encode(),
    b"*",
    b" ",
    b"a b",
    b"-",
    b".a",
    b"]",
    b"[",
    b"\xff",
    b"#",
    b"!",
    b"aab",
]


def test_any_pattern_matches_what_it_matches_for_git(tmp_path: Path) -> None:
    chance = random.Random(1)
    root = os.fsencode(tmp_path)
    git(tmp_path, "init", "-q")
    paths = sorted({b"/".join(chance.choices(NAMES, k=chance.randint(1, 4))) for _ in range(60)})
    files: dict[bytes, bytes] = {}
    for number in range(300):
        lines = [b"".join(chance.choices(TOKENS, k=chance.randint(1, 7))) for _ in range(chance.randint(1, 3))]
        files[b"%d" % number] = b"\n".join(lines)
        os.mkdir(root + b"/%d" % number)
        Path(os.fsdecode(root + b"/%d/.gitignore" % number)).write_bytes(files[b"%d" % number])
    asked = b"\0".join(b"%b/%b" % (folder, path) for folder in files for path in paths)
    command = ["git", "check-ignore", "--no-index", "-z", "--stdin"]
    answer = subprocess.run(command, cwd=tmp_path, input=asked, capture_output=True, check=False).stdout
    expected = set(answer.split(b"\0")) - {b""}
    assert len(expected) > 500
    for folder, content in files.items():
        patterns = Patterns.parse(content)
        ours = {path for path in paths if is_ignored(patterns, path)}
        assert ours == {path for path in paths if folder + b"/" + path in expected}, content


def is_ignored(patterns: Patterns, path: bytes) -> bool:
    names = path.split(b"/")
    for depth, name in enumerate(names[:-1], start=1):
        if patterns.decide(name, b"/".join(names[:depth]), is_directory=True):
            return True
    return bool(patterns.decide(names[-1], path, is_directory=False))


def test_no_pattern_takes_long() -> None:
    patterns = [
        b"*a" * 60 + b"b",
        b"**/" + b"*a/**/" * 40 + b"b",
        b"/" + b"a*" * 60 + b"b",
        b"a" + b" " * 1_000_000 + b"b",
    ]
    for pattern in patterns:
        assert not is_ignored(Patterns.parse(pattern), b"/".join([b"a" * 120] * 30))


FOLDERS = ["", "a/", "b/", "a/b/", "ü/", "q'\n/", "nested/", "nested/a/", "build/"]
FILES = ["x.pem", ".env", "a.key", "id_rsa", "é.pem", "b c.pem", "t.pem", "\udcff.pem"]
"""Names of secrets: what of them git ignores is left out of a copy, all else is in it."""
LINES = [
    "*.pem",
    "!x.pem",
    "/a",
    "a/",
    "build/",
    "**/b",
    "*",
    "!*/",
    "!.env",
    "a/b/*.key",
    "é*",
    "/ü/**",
    "\\!x",
    "# a",
    "id_rsa ",
    "[a-c].key",
    "b c.pem",
    "!t.pem",
    "a/**/t.pem",
    "q*/",
    "nested",
    "!nested/",
    "?.key",
]

PATHS = st.tuples(st.sampled_from(FOLDERS), st.sampled_from(FILES)).map("".join)
RULES = st.lists(st.sampled_from(LINES), max_size=4).map(lambda lines: "\n".join(lines).encode())


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.sets(PATHS, min_size=1, max_size=14),
    tracked=st.sets(PATHS, max_size=4),
    ignore_files=st.dictionaries(st.sampled_from(FOLDERS), RULES, max_size=4),
    exclude=RULES,
    user_rules=RULES,
    nested=st.booleans(),
    version=st.sampled_from(["2", "4"]),
)
def test_a_copy_leaves_out_what_git_ignores(
    tmp_path_factory: pytest.TempPathFactory,
    files: set[str],
    tracked: set[str],
    ignore_files: dict[str, bytes],
    exclude: bytes,
    user_rules: bytes,
    nested: bool,
    version: str,
) -> None:
    home = tmp_path_factory.mktemp("home")
    source = write_tree(home / "p", dict.fromkeys(files | tracked, b"1"))
    write_tree(source, {f"{folder}.gitignore": rules for folder, rules in ignore_files.items()})
    write_tree(home, {"config/git/ignore": user_rules})
    repositories = [source / "nested"] if nested and (source / "nested").is_dir() else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        patch.setenv("GIT_INDEX_VERSION", version)
        for repository in (*repositories, source):
            git(repository, "init", "-q")
            (repository / ".git/info/exclude").write_bytes(exclude)
        added = sorted(path for path in tracked if not (nested and path.startswith("nested/")))
        git(source, "update-index", "--add", "-z", "--stdin", stdin=b"\0".join(map(os.fsencode, added)))
        assert set(select(source, frozenset()).left_out) == ignored_by_git(source, repositories)


def ignored_by_git(source: Path, nested: list[Path]) -> set[str]:
    found: set[Path] = set()
    for repository in (source, *nested):
        command = ["git", "ls-files", "-z", "--others", "--ignored", "--exclude-standard"]
        listed = subprocess.run(command, cwd=repository, capture_output=True, check=True).stdout.split(b"\0")
        for path in (repository / os.fsdecode(path) for path in listed if path):
            found |= set(path.rglob("*")) if path.is_dir() else {path}
    return {str(path.relative_to(source)) for path in found if path.name in FILES}
