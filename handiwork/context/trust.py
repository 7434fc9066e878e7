"""Trust: a repository's text advises an agent only after the user has accepted its hash.

Accepted hashes are in the user's data folder, readable by the user alone, by workspace and path: the user is asked
again about the same text in another repository, and about another text at the same path. No setting, variable or file
of a repository accepts anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from handiwork.context.conventions import Convention
from handiwork.errors import HandiworkError
from handiwork.events.base import Model
from handiwork.paths import locked, private_dirs, write_private

FILE = "trust.json"

REMEMBERED = 20
"""Hashes that are remembered of one path, so that changing between branches does not ask each time."""

Verdict = Literal["own", "accepted", "changed", "new"]
"""Whether a convention is the user's own or a package's, accepted, changed since, or never accepted."""


class TrustError(HandiworkError):
    """The file of accepted texts cannot be used; the text names the remedy."""

    status = 500


class _Answers(Model):
    """The answers about one path: accepted and refused hashes with their time, and the text accepted last."""

    accepted: dict[str, str] = Field(default_factory=dict)
    refused: dict[str, str] = Field(default_factory=dict)
    text: str = ""


class _Workspaces(Model):
    """The content of the file: answers by workspace and path."""

    workspaces: dict[str, dict[str, _Answers]] = Field(default_factory=dict)


@dataclass(frozen=True)
class Trust:
    """The accepted texts in a data folder. Every method raises TrustError for a file that cannot be used."""

    data: Path

    def verdicts(self, workspace: Path, conventions: Sequence[Convention]) -> list[Verdict]:
        """Return for each convention whether the user has accepted it for the workspace."""
        needed = any(one.origin == "workspace" for one in conventions)
        answers = self._load().workspaces.get(str(workspace), {}) if needed else {}
        return [_verdict(one, answers.get(one.path, _Answers())) for one in conventions]

    def accepts(self, workspace: Path, path: str, sha256: str) -> bool:
        """Return whether the user has accepted this hash for the path, which is relative to the workspace."""
        return sha256 in self._answers(workspace, path).accepted

    def refused(self, workspace: Path, convention: Convention) -> bool:
        """Return whether the user has refused exactly this text."""
        return convention.sha256 in self._answers(workspace, convention.path).refused

    def accepted_text(self, workspace: Path, path: str) -> str:
        """Return the text that the user accepted last for the path, "" if none."""
        return self._answers(workspace, path).text

    def answer(self, workspace: Path, conventions: Iterable[Convention], *, accept: bool) -> None:
        """Keep the user's answer about these texts of a workspace."""
        private_dirs(self.data)
        with locked(self.data / f"{FILE}.lock", flags=os.O_RDWR | os.O_CREAT):
            content = self._load()
            paths = dict(content.workspaces.get(str(workspace), {}))
            for convention in conventions:
                answers = paths.get(convention.path, _Answers())
                paths[convention.path] = _answered(answers, convention, accept)
            content = _Workspaces(workspaces={**content.workspaces, str(workspace): paths})
            write_private(self.data / FILE, content.model_dump_json(indent=1))

    def _answers(self, workspace: Path, path: str) -> _Answers:
        return self._load().workspaces.get(str(workspace), {}).get(path, _Answers())

    def _load(self) -> _Workspaces:
        file = self.data / FILE
        try:
            return _Workspaces.model_validate_json(file.read_bytes())
        except FileNotFoundError:
            return _Workspaces()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is damaged"
            raise TrustError(
                f"{file}, which lists the texts that you accepted, cannot be read: {reason}; remove it, and accept "
                "them again with `handiwork context --accept`"
            ) from None


def _verdict(convention: Convention, answers: _Answers) -> Verdict:
    if convention.origin != "workspace":
        return "own"
    if convention.sha256 in answers.accepted:
        return "accepted"
    return "changed" if answers.accepted else "new"


def _answered(answers: _Answers, convention: Convention, accept: bool) -> _Answers:
    now, sha256 = datetime.now(UTC).isoformat(timespec="seconds"), convention.sha256
    accepted = {key: value for key, value in answers.accepted.items() if key != sha256}
    refused = {key: value for key, value in answers.refused.items() if key != sha256}
    if accept:
        accepted = dict([*accepted.items(), (sha256, now)][-REMEMBERED:])
    else:
        refused = dict([*refused.items(), (sha256, now)][-REMEMBERED:])
    return _Answers(accepted=accepted, refused=refused, text=convention.shown if accept else answers.text)
