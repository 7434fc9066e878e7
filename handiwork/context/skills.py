"""Agent skills: folders with a ``SKILL.md``, by the specification of agentskills.io.

The prompt has a skill's name and description, the agent reads the body when the skill fits, and the files it names when
it needs them. ``allowed-tools`` allows nothing here.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from handiwork.context.characters import one_line, visible
from handiwork.context.conventions import (
    ABOVE,
    Convention,
    UnreadableError,
    digest,
    folders_around,
    opened,
    read_file,
    text_of,
    warnings,
)
from handiwork.events.record import ContextOrigin
from handiwork.paths import private_dirs
from handiwork.workspace.files.safe_open import entries_beneath, join

PLACES = (".agents/skills", ".claude/skills", ".handiwork/skills")
"""The folders of skills in a workspace; of two skills with one name the first counts."""

USER = "skills"
"""The folder of skills in the user's settings folder."""

FILE = "SKILL.md"
PACKAGES = "handiwork.skill_folders"
"""The group of entry points that name a package whose folders are skills."""

LONGEST_NAME, LONGEST_DESCRIPTION = 64, 1_024
"""Characters of a skill's name, and of its description."""

SKILLS, FILES, BYTES = 64, 200, 5_000_000
"""Skills of one place; files of a skill, and their bytes together."""

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def of_workspace(root: int) -> list[Convention]:
    """Return the skills of an open workspace, in the order of PLACES."""
    return [skill for place in PLACES for skill in _in_place(root, place, "workspace", "")]


def around(workspace: Path) -> list[Convention]:
    """Return the skills of the folders around a workspace, the nearest first, with paths like ``../``."""
    folders = folders_around(workspace)
    return [
        skill for prefix, root in folders for place in PLACES for skill in _in_place(root, place, "workspace", prefix)
    ]


def of_user(folder: Path) -> list[Convention]:
    """Return the skills in a folder of the user's, with absolute paths."""
    return _in_folder(folder, "user")


def of_packages() -> list[Convention]:
    """Return the skills of installed packages; of a dotted name, only the package around it is imported."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    skills: list[Convention] = []
    for point in entry_points(group=PACKAGES):
        try:
            spec = find_spec(point.value)
        except (ImportError, ValueError) as error:
            skills.append(_broken("package", point.value, f"its package cannot be found: {error}"))
            continue
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            skills += _in_folder(Path(folder), "package")
    return skills


def copy_skill(skill: Convention, store: Path, workspace: Path) -> Path:
    """Return the path of the SKILL.md in a copy of a skill below ``store``; make a missing copy.

    The skill is a user's, a package's, or of a folder around the ``workspace``. Copies are named by their content, so
    that every session finds its own version; sandboxes mount the store read-only. Raises OSError, UnreadableError,
    WorkspaceError.
    """
    source, folder = _place_of(skill, workspace)
    target = store / skill.sha256[:16] / source.joinpath(folder).name
    if not target.exists():
        private_dirs(store.parent)
        store.mkdir(mode=0o755, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".part-", dir=store))
        try:
            with opened(source) as root:
                listing = list(_files(root, folder))
                for path, _, _ in listing:
                    content = read_file(root, join(folder, path), BYTES)
                    copy = draft / target.name / path
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_bytes(content or b"")
                    executable = os.stat(join(folder, path), dir_fd=root, follow_symlinks=False).st_mode & 0o100
                    copy.chmod(0o755 if executable else 0o644)
            with opened(draft) as root:
                if _digest(_files(root, target.name)) != skill.sha256:
                    raise UnreadableError("it changed while it was copied")
            draft.chmod(0o755)
            if not target.parent.exists():
                draft.rename(target.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return target / FILE


def _place_of(skill: Convention, workspace: Path) -> tuple[Path, str]:
    """Return a folder to open, and the path of a skill's folder in it, in which links are not followed."""
    folder, height = skill.folder, 0
    while folder.startswith(ABOVE):
        folder, height = folder.removeprefix(ABOVE), height + 1
    return (workspace.parents[height - 1], folder) if height else (Path(folder), "")


def _in_folder(folder: Path, origin: ContextOrigin) -> list[Convention]:
    if not folder.is_dir():
        return []
    with opened(folder.resolve()) as root:
        return _in_place(root, "", origin, f"{folder}/")


def _in_place(root: int, place: str, origin: ContextOrigin, prefix: str) -> list[Convention]:
    """Return the skills below ``place``; ``prefix`` comes before their paths."""
    try:
        entries = sorted(entries_beneath(root, place))
    except FileNotFoundError:
        return []
    except OSError:
        return [_broken(origin, prefix + place, "it is a symbolic link or no folder, and links are not followed")]
    skills: list[Convention] = []
    for name, status in entries:
        path = join(join(place, name), FILE)
        if stat.S_ISLNK(status.st_mode):
            skills.append(_broken(origin, prefix + path, "its folder is a symbolic link, and links are not followed"))
        elif stat.S_ISDIR(status.st_mode) and (skill := _skill(root, path, name, origin, prefix)) is not None:
            skills.append(skill)
    if len(skills) > SKILLS:
        rest = _broken(origin, prefix + place, f"{len(skills) - SKILLS} more skills: at most {SKILLS} of a folder load")
        return [*skills[:SKILLS], rest]
    return skills


def _skill(root: int, path: str, name: str, origin: ContextOrigin, prefix: str) -> Convention | None:
    """Return a skill, with its problem if it is broken; None if the folder has no SKILL.md."""
    try:
        content = read_file(root, path)
        if content is None:
            return None
        text = text_of(content)
        description = _description(text, name)
        files = list(_files(root, path.rpartition("/")[0]))
    except UnreadableError as error:
        return _broken(origin, prefix + path, str(error))
    others = [f"  {one_line(file)}, {size} bytes, SHA-256 {sha256}\n" for file, sha256, size in files if file != FILE]
    shown = visible(text).rstrip("\n") + "\n" + ("\nOther files of this skill:\n" + "".join(others) if others else "")
    return Convention(
        "skill",
        origin,
        prefix + path,
        f"{name}: {' '.join(visible(description).split())}",
        shown,
        _digest(files),
        notes=warnings(text),
        size=len(text),
    )


def _digest(files: Iterable[tuple[str, str, int]]) -> str:
    """Return the SHA-256 of a skill's files, which the user accepts."""
    listing = "".join(f"{sha256}  {file}\n" for file, sha256, _ in files)
    return digest(listing.encode(errors="surrogateescape"))


def _description(text: str, folder: str) -> str:
    """Return the description of a skill that keeps the specification. Raises UnreadableError."""
    # Imported late: most workspaces have no skill, and YAML takes long to import.
    from handiwork.front_matter import FrontMatterError, split

    try:
        fields = split(text).values
    except FrontMatterError as error:
        raise UnreadableError(str(error)) from None
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        rule = f"lower-case letters, digits and single hyphens, at most {LONGEST_NAME}"
        raise UnreadableError(f"its name must be {rule}")
    if name != folder:
        raise UnreadableError(f"its name is {name}, but its folder's is {one_line(folder)}: they must be the same")
    if not isinstance(description, str) or not 0 < len(description.strip()) <= LONGEST_DESCRIPTION:
        raise UnreadableError(f"its description must be a text of 1 to {LONGEST_DESCRIPTION} characters")
    return description


def _files(root: int, folder: str) -> Iterator[tuple[str, str, int]]:
    """Yield path below the skill's folder, SHA-256 and size of its regular files, sorted. Raises UnreadableError.

    A link counts with its target as content, and is not followed.
    """
    top, pending, number, total = folder, [folder], 0, 0
    paths: list[tuple[str, os.stat_result]] = []
    while pending:
        folder = pending.pop()
        for name, status in entries_beneath(root, folder):
            path = join(folder, name)
            if stat.S_ISDIR(status.st_mode):
                pending.append(path)
            else:
                paths.append((path, status))
            number += 1
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
            if number > FILES or total > BYTES:
                raise UnreadableError(f"it has more than {FILES} files or {BYTES // 1_000_000} MB")
    for path, status in sorted(paths):
        below = path[len(top) :].lstrip("/")
        if stat.S_ISLNK(status.st_mode):
            raise UnreadableError(f"its file {one_line(below)} is a symbolic link, and links are not followed")
        if "\n" in below:  # its line in the list of hashes could pose as two files
            raise UnreadableError(f"its file {one_line(below)} has a line break in its name")
        content = read_file(root, path, BYTES)
        if content is not None:
            yield below, digest(content), len(content)


def _broken(origin: ContextOrigin, path: str, problem: str) -> Convention:
    return Convention("skill", origin, path, problem=problem)
