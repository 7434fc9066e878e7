"""Conventions are read whole or not at all, nothing hidden stays hidden, and a hostile text costs no time."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.context.characters import hidden_kinds, visible
from handiwork.context.conventions import LARGEST, LONGEST, Convention, UnreadableError, digest, opened, read_file
from handiwork.context.devcontainer import parse, without_comments
from handiwork.context.discovery import at_begin, everything, folders_of, in_folders, judge, unread
from handiwork.context.skills import copy_skill, of_packages
from handiwork.context.trust import Trust, TrustError

HEAD = "---\nname: {}\ndescription: Does it.\n---\nThe body.\n"


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def skill(root: Path, name: str, text: str | None = None, place: str = ".agents/skills") -> Path:
    folder = root / place / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(HEAD.format(name) if text is None else text)
    return folder


def found(root: Path) -> dict[str, Convention]:
    return {convention.path: convention for convention in at_begin(root, root / "no-settings", packages=False)}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a\u202eb", "1 bidirectional control (line 1)"),
        ("a\n\u200b\u200b", "2 zero-width characters (line 2)"),
        ("\U000e0041\U000e0042", "2 tag characters (line 1)"),
        ("a\ufe01", "1 variation selector (line 1)"),
        ("a\x1b[31m", "1 control character (line 1)"),
        ("\u3164", "1 invisible character (line 1)"),
        ("a\u200db", "1 zero-width character (line 1)"),
    ],
)
def test_hidden_characters_are_named_and_shown_as_escapes(text: str, kind: str) -> None:
    assert hidden_kinds(text) == [kind]
    assert visible(text).replace("\n", "").isprintable()
    assert "\\" in visible(text)


@pytest.mark.parametrize("text", ["plain\n\ttext", "naïve Größe 日本語", "❤️ 👩‍💻 1️⃣ ℹ️ ⁉️", "price: 5 € — “ok”"])
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert hidden_kinds(text) == []
    assert visible(text) == text


@given(st.text())
def test_what_is_shown_hides_nothing(text: str) -> None:
    assert hidden_kinds(visible(text)) == []


def test_a_file_is_loaded_with_its_hash_and_a_long_one_is_cut_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, **{"AGENTS.md": "\ufeffUse tabs.\r\nAlways.\r\n", "CLAUDE.md": "x" * (LONGEST + 5)})
    agents, claude = found(tmp_path).values()
    assert agents.text == "Use tabs.\nAlways."
    assert (agents.tokens, agents.notes, len(agents.sha256)) == (6, (), 64)
    assert "5 more characters are left out: read CLAUDE.md" in claude.text
    assert claude.notes == (f"its last 5 of {LONGEST + 5} characters are cut",)


def test_the_same_text_under_two_names_loads_once(tmp_path: Path) -> None:
    write(tmp_path, **{"AGENTS.md": "same", "CLAUDE.md": "same"})
    assert [(one.problem, one.redundant) for one in found(tmp_path).values()] == [
        ("", False),
        ("its text is that of AGENTS.md", True),
    ]
    (tmp_path / "AGENTS.md").unlink()
    (tmp_path / "AGENTS.md").symlink_to("CLAUDE.md")
    assert found(tmp_path)["AGENTS.md"].redundant
    assert found(tmp_path)["CLAUDE.md"].text == "same"


def test_a_claude_md_in_the_folder_of_claude_is_that_of_the_folder_around_it(tmp_path: Path) -> None:
    write(tmp_path, **{".claude/CLAUDE.md": "@style.md", ".claude/style.md": "Be brief."})
    assert list(found(tmp_path)) == [".claude/CLAUDE.md", ".claude/style.md"]
    states = {one.convention.path: one.state for one in everything(tmp_path, tmp_path / "none", Trust(tmp_path))}
    assert states == dict.fromkeys([".claude/CLAUDE.md", ".claude/style.md"], "not accepted")


def test_imports_stay_in_the_workspace_and_end(tmp_path: Path) -> None:
    text = "@docs/style.md\n@../secret\n@/etc/passwd\n@~/x\n```\n@docs/code.md\n```\nmail me @home\n@missing.md\n"
    write(tmp_path, **{"AGENTS.md": text, "docs/style.md": "@style.md\n@../AGENTS.md\nBe brief."})
    conventions = found(tmp_path)
    assert list(conventions) == ["AGENTS.md", "docs/style.md", "missing.md"]
    assert conventions["docs/style.md"].text.endswith("Be brief.")
    assert conventions["missing.md"].problem
    assert [note.partition(" leads")[0] for note in conventions["AGENTS.md"].notes] == [
        "its import @../secret",
        "its import @/etc/passwd",
        "its import @~/x",
    ]


def test_nothing_but_a_regular_file_of_a_bounded_size_is_read(tmp_path: Path) -> None:
    write(tmp_path, real="text", big="x" * (LARGEST + 1))
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "folder").mkdir()
    (tmp_path / "way").symlink_to(".")
    os.mkfifo(tmp_path / "pipe")
    with opened(tmp_path) as root:
        assert read_file(root, "real") == b"text"
        assert read_file(root, "missing") is None
        for name in ("link", "folder", "pipe", "big", "way/real", "real/x"):
            with pytest.raises(UnreadableError):
                read_file(root, name)


def test_a_skill_keeps_the_specification(tmp_path: Path) -> None:
    skill(tmp_path, "notes")
    (tmp_path / ".agents/skills/notes/run.sh").write_text("echo")
    (notes,) = found(tmp_path).values()
    assert notes.text == "notes: Does it."
    assert "The body." in notes.shown
    assert "run.sh, 4 bytes" in notes.shown
    before = notes.sha256
    (tmp_path / ".agents/skills/notes/run.sh").write_text("evil")
    assert found(tmp_path)[notes.path].sha256 != before


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no front matter", "no front matter"),
        ("---\nname: a\n", "the front matter has no end"),
        ("---\n[\n---\n", "the YAML is invalid"),
        ("---\n- a\n---\n", "not a list of KEY: VALUE"),
        ("---\nname: A\ndescription: d\n---\n", "its name must be"),
        ("---\nname: ../a\ndescription: d\n---\n", "its name must be"),
        ("---\nname: b\ndescription: d\n---\n", "they must be the same"),
        ("---\nname: a\n---\n", "its description must be"),
        (f"---\nname: a\ndescription: {'d' * 1025}\n---\n", "its description must be"),
        (f"---\nname: a\ndescription: d\nmore: {'x' * 20_000}\n---\n", "more than 16000 characters"),
        ("---\nname: a\ndescription: !!python/object/apply:os.getcwd []\n---\n", "the YAML is invalid"),
        ("---\nname: a\nd: &x [1]\ndescription: *x\n---\n", "an alias"),
        (f"---\nname: a\nd:\n  {'- ' * 5_000}\n---\n", "nested more than"),
        (f"---\nname: a\ndescription: {'[' * 5_000}\n---\n", "nested more than"),
    ],
)
def test_a_skill_that_breaks_it_says_why(tmp_path: Path, text: str, problem: str) -> None:
    skill(tmp_path, "a", text)
    assert problem in found(tmp_path)[".agents/skills/a/SKILL.md"].problem


def test_a_skill_with_a_file_whose_name_has_a_line_break_is_refused(tmp_path: Path) -> None:
    (skill(tmp_path, "a") / f"x\n{'0' * 64}  run.sh").write_text("echo")
    (refused,) = found(tmp_path).values()
    assert "run.sh has a line break in its name" in refused.problem


def test_a_copy_of_a_skill_has_its_files_and_is_made_once(tmp_path: Path) -> None:
    folder = skill(tmp_path / "settings", "mine", place="skills")
    write(folder, **{"scripts/go.sh": "echo go"})
    (folder / "scripts/go.sh").chmod(0o700)
    (own,) = at_begin(write(tmp_path / "project", a=""), tmp_path / "settings", packages=False)
    copy = copy_skill(own, tmp_path / "data/skills", tmp_path)
    assert copy == copy_skill(own, tmp_path / "data/skills", tmp_path)
    assert copy.read_text() == HEAD.format("mine")
    assert (copy.parent / "scripts/go.sh").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in (tmp_path / "data/skills").iterdir()] == [own.sha256[:16]]


def test_a_skill_of_the_user_may_have_large_assets(tmp_path: Path) -> None:
    asset = b"x" * 300_000
    (skill(tmp_path / "settings", "mine", place="skills") / "picture.png").write_bytes(asset)
    (own,) = at_begin(write(tmp_path / "project", a=""), tmp_path / "settings", packages=False)
    assert (own.problem, own.text) == ("", "mine: Does it.")
    copy = copy_skill(own, tmp_path / "data/skills", tmp_path)
    assert (copy.parent / "picture.png").read_bytes() == asset


def test_of_skills_around_the_workspace_the_nearest_counts_and_a_copy_has_the_accepted_text(tmp_path: Path) -> None:
    workspace = write(tmp_path / "packages/a", x="")
    build = skill(tmp_path, "build")
    skill(tmp_path, "tidy")
    skill(tmp_path / "packages", "tidy", place=".claude/skills")
    assert found(workspace) == {}, "without a repository there is nothing around"
    (tmp_path / ".git").mkdir()
    conventions = list(found(workspace).values())
    trust, store = Trust(tmp_path / "data"), tmp_path / "data/store"
    trust.answer(workspace, conventions, accept=True)
    states = {one.convention.path: one.state for one in judge(conventions, workspace, trust)}
    assert states == {
        "../.claude/skills/tidy/SKILL.md": "loads",
        "../../.agents/skills/build/SKILL.md": "loads",
        "../../.agents/skills/tidy/SKILL.md": "left out",
    }
    write(build, **{"run.sh": "evil"})
    with pytest.raises(UnreadableError, match="it changed"):
        copy_skill(conventions[1], store, workspace)
    (build / "run.sh").unlink()
    assert copy_skill(conventions[1], store, workspace).read_text() == HEAD.format("build")


def test_the_skills_of_packages_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skill(tmp_path, "packed", place="packages/helpful")
    write(
        tmp_path / "packages/helpful-1.dist-info",
        METADATA="Metadata-Version: 2.1\nName: helpful\nVersion: 1\n",
        **{"entry_points.txt": "[handiwork.skill_folders]\na = helpful\nb = missing_package.skills\n"},
    )
    write(tmp_path / "packages/helpful", **{"__init__.py": "raise RuntimeError"})
    monkeypatch.syspath_prepend(tmp_path / "packages")
    packed, missing = of_packages()
    assert (packed.text, packed.origin) == ("packed: Does it.", "package")
    assert "cannot be found" in missing.problem


def test_of_skills_with_one_name_the_first_accepted_one_counts(tmp_path: Path) -> None:
    skill(tmp_path, "a", place=".agents/skills")
    skill(tmp_path, "a", place=".claude/skills")
    skill(tmp_path / "settings", "a", place="skills")
    trust = Trust(tmp_path / "data")
    conventions = at_begin(tmp_path, tmp_path / "settings", packages=False)
    states = [finding.state for finding in judge(conventions, tmp_path, trust)]
    assert states == ["not accepted", "not accepted", "loads"]
    trust.answer(tmp_path, conventions[1:2], accept=True)
    states = [finding.state for finding in judge(conventions, tmp_path, trust)]
    assert states == ["not accepted", "loads", "left out"]


def test_a_devcontainer_gives_what_a_sandbox_can_use() -> None:
    text = """{
      // a comment, "with quotes"
      "name": "x", "image": "python:3.12", /* another , */
      "containerEnv": {"A": "it's //no comment", "B": "${localEnv:HOME}", "1C": "x"},
      "remoteEnv": {"PATH": "${containerEnv:PATH}:/opt/my tools"},
      "initializeCommand": "curl evil", "features": {"x": {}}, "mounts": [],
      "postCreateCommand": {"one": "npm ci && echo ok", "two": ["echo", "a b", ],},
    }"""
    parsed = parse(text, "/home/me/app")
    assert parsed.image == "python:3.12"
    assert list(parsed.shell_commands()) == [
        """export A='it'"'"'s //no comment'""",
        """export PATH="${PATH}"':/opt/my tools'""",
        "npm ci && echo ok",
        "echo 'a b'",
    ]
    assert parsed.left_out == (
        "initializeCommand would run on this machine and never does",
        "not supported: features, mounts",
        "the variable B is left out: ${localEnv:HOME} is not supported",
        "the variable 1C is left out: it has a name or value that is not supported",
    )


def test_the_remote_environment_builds_on_that_of_the_container() -> None:
    container = {
        "containerEnv": {"DATA": "/data", "TOOLS": "/opt/tools"},
        "remoteEnv": {"CACHE": "${containerEnv:DATA}/cache", "TOOLS": "${containerEnv:TOOLS}/bin"},
        "postCreateCommand": "echo $DATA $CACHE $TOOLS",
    }
    commands = "\n".join(parse(json.dumps(container), "/home/me/app").shell_commands())
    shell = subprocess.run(["bash", "-c", commands], capture_output=True, text=True, check=True)
    assert shell.stdout == "/data /data/cache /opt/tools/bin\n"


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("bash ${containerWorkspaceFolder}/s.sh", "bash /home/me/app/s.sh"),
        ('cd "${localWorkspaceFolder}/lib" && make', 'cd "/home/me/app/lib" && make'),
        ("echo ${containerWorkspaceFolderBasename} ${localWorkspaceFolderBasename}", "echo app app"),
        ("echo ${containerEnv:PATH} ${HOME} ${N:-20} ${A:1:2}", "echo ${PATH} ${HOME} ${N:-20} ${A:1:2}"),
        (["sh", "-c", "echo ${N:-20} $1", "${containerEnv:A B}"], None),
        (["ls", "${localWorkspaceFolder}/a b", "${containerEnv:HOME}"], "ls /home/me/app'/a b' \"${HOME}\""),
        (["sh", "-c", "echo ${N:-20}"], "sh -c 'echo ''${N:-20}'"),
        ("ls ${localEnv:HOME}", None),
        ("ls ${env:HOME}", None),
        ("echo ${containerEnv:A:b}", None),
        ("echo ${devcontainerId}", None),
        ("echo ${X:-${localEnv:HOME}}", None),
    ],
)
def test_variables_of_a_command_are_the_sandboxs_or_it_is_left_out(command: str | list[str], runs: str | None) -> None:
    parsed = parse(json.dumps({"postCreateCommand": {"it": command, "next": "true"}}), "/home/me/app")
    assert list(parsed.shell_commands()) == [*([] if runs is None else [runs]), "true"]
    assert [note.partition(": ")[0] for note in parsed.left_out] == ["a postCreateCommand is left out"] * (runs is None)


def test_a_workspaces_path_is_quoted_and_never_evaluated() -> None:
    path = "/home/me/$(touch x) 'y'"
    container = {
        "containerEnv": {"PATH": "${containerWorkspaceFolder}/bin:${containerEnv:PATH}"},
        "postCreateCommand": {"list": ["echo", "${containerWorkspaceFolder}"], "text": "cd ${localWorkspaceFolder}"},
    }
    parsed = parse(json.dumps(container), path)
    printed = subprocess.run(
        ["bash", "-c", "; ".join([*parsed.shell_commands(), 'echo "$PATH"'])],
        env={"PATH": "/bin"}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert printed == f"{path}\n{path}/bin:/bin\n"
    assert [note for note in parsed.left_out if "use a list" in note]


def test_a_devcontainer_in_a_folder_of_its_own_is_used_if_it_is_the_only_one(tmp_path: Path) -> None:
    write(tmp_path, **{".devcontainer/python/devcontainer.json": "{}", ".devcontainer/notes/x.txt": ""})
    assert list(found(tmp_path)) == [".devcontainer/python/devcontainer.json"]
    assert list(unread(tmp_path)) == []
    write(tmp_path, **{".devcontainer/rust/devcontainer.json": "{}"})
    assert list(found(tmp_path)) == []
    why = "one of 2 in .devcontainer: a session uses the only one, or .devcontainer/devcontainer.json"
    assert list(unread(tmp_path)) == [(f".devcontainer/{name}/devcontainer.json", why) for name in ("python", "rust")]
    write(tmp_path, **{".devcontainer.json": "{}"})
    assert list(found(tmp_path)) == [".devcontainer.json"]
    assert [why for _, why in unread(tmp_path)] == [".devcontainer.json counts"] * 2


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"image": 1}', '{"image": "-v /:/x"}', '{"containerEnv": 1}', '{"postCreateCommand": 1}']
)
def test_a_broken_devcontainer_says_why(text: str) -> None:
    with pytest.raises(UnreadableError):
        parse(text, "/w")


@pytest.mark.parametrize("text", ['"' + '\\"' * 120_000, "/*" * 120_000, ",/**/" * 50_000, "[" * 200_000])
def test_no_text_takes_long(text: str) -> None:
    without_comments(text)
    with pytest.raises(UnreadableError):
        parse(text, "/w")


@given(st.recursive(st.none() | st.booleans() | st.text(), lambda below: st.dictionaries(st.text(), below)))
def test_json_without_comments_stays_as_it_is(value: object) -> None:
    text = json.dumps(value, indent=1)
    assert without_comments(text) == text


def test_what_no_session_reads_is_named_in_and_around_the_workspace(tmp_path: Path) -> None:
    workspace = tmp_path / "packages/a"
    write(tmp_path, **{".git/config": "", "CLAUDE.local.md": "x", ".cursor/rules/a.mdc": "x"})
    write(workspace, **{"opencode.json": "{}", ".handiwork/agents/sub/x.md": "x", ".handiwork/agents/y.md": "y"})
    write(workspace, **{"web/.handiwork/agents/z.md": "z", "web/.agents/skills/s/SKILL.md": "s", ".claude/rules/r": ""})
    reasons = dict(unread(workspace))
    assert set(reasons) == {
        *("opencode.json", ".claude/rules", ".handiwork/agents/sub/x.md"),
        *("web/.handiwork/agents", "web/.agents/skills", "../../CLAUDE.local.md", "../../.cursor/rules"),
    }
    assert reasons["web/.handiwork/agents"] == "below the workspace: a session that starts in web has it"


def test_an_answer_holds_for_one_text_at_one_path_of_one_workspace(tmp_path: Path) -> None:
    write(tmp_path, **{"AGENTS.md": "one"})
    trust, convention = Trust(tmp_path / "data"), found(tmp_path)["AGENTS.md"]
    assert trust.verdicts(tmp_path, [convention]) == ["new"]
    trust.answer(tmp_path, [convention], accept=True)
    assert trust.verdicts(tmp_path, [convention]) == ["accepted"]
    assert trust.accepted_text(tmp_path, "AGENTS.md") == "one"
    one, changed = digest(b"one"), digest(b"one ")
    assert trust.accepts(tmp_path, "AGENTS.md", one)
    assert not trust.accepts(tmp_path, "AGENTS.md", changed)
    assert not trust.accepts(tmp_path, "CLAUDE.md", one)
    assert not trust.accepts(tmp_path / "other", "AGENTS.md", one)
    write(tmp_path, **{"AGENTS.md": "two"})
    assert trust.verdicts(tmp_path, [found(tmp_path)["AGENTS.md"]]) == ["changed"]
    assert (tmp_path / "data/trust.json").stat().st_mode & 0o777 == 0o600


def test_a_refusal_is_remembered_for_that_text(tmp_path: Path) -> None:
    write(tmp_path, **{"AGENTS.md": "one"})
    trust, convention = Trust(tmp_path / "data"), found(tmp_path)["AGENTS.md"]
    trust.answer(tmp_path, [convention], accept=False)
    assert trust.refused(tmp_path, convention)
    assert trust.verdicts(tmp_path, [convention]) == ["new"]
    trust.answer(tmp_path, [convention], accept=True)
    assert not trust.refused(tmp_path, convention)


def test_a_damaged_file_of_answers_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "trust.json").write_text("[]")
    with pytest.raises(TrustError, match="remove it"):
        Trust(tmp_path).accepts(tmp_path, "AGENTS.md", "0")


def test_folders_of_paths_lie_below_the_workspace() -> None:
    paths = ["web/src/a.py", "/w/docs/x.md", "../../etc/passwd", "/w/../etc/x", "b.py", "/wx/y/z"]
    assert folders_of(paths, "/w") == {"web", "web/src", "docs"}
    assert folders_of(["a.py"], "/w", "/w/lib") == {"lib"}
    assert folders_of(["web/", "/w/docs/."], "/w") == {"web", "docs"}


def test_in_folders_follows_no_link(tmp_path: Path) -> None:
    write(tmp_path, **{"real/AGENTS.md": "nested"})
    (tmp_path / "link").symlink_to("real")
    assert [one.path for one in in_folders(tmp_path, ["link", "real", "none"])] == ["real/AGENTS.md"]
