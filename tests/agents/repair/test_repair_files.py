"""The texts of files that an agent knows from its reads."""

from __future__ import annotations

import pytest

from handiwork.agents.repair.files import FileProgress
from handiwork.events.action import CmdRunAction, FileReadAction, OutputReadAction
from handiwork.events.observation import (
    CmdOutputObservation,
    ErrorObservation,
    FileReadObservation,
    OutputReadObservation,
)

ROOM = 16_384
"""Characters of an observation; of a longer one only the ends are in the log."""


def read_whole(text: str) -> FileProgress:
    """Return the progress after all reads of a file of this text that the agent asks for."""
    progress, lines = FileProgress(task="Mend it."), text.splitlines(keepends=True)
    while actions := progress.reads(["a.js"]):
        for action in actions:
            assert isinstance(action, FileReadAction)
            first, last = action.start or 1, min(action.end or len(lines), len(lines))
            part = "".join(lines[first - 1 : last])
            blob = None if len(part) <= ROOM else "b" * 64
            place = FileReadObservation(path="a.js", start=first, end=last, lines=len(lines), blob=blob)
            progress.apply(action, place.with_fields(content=part if blob is None else part[:100]), "")
    return progress


@pytest.mark.parametrize("dense", [range(5), range(150, 250), range(395, 400)])
def test_a_file_is_read_without_a_hole_where_its_lines_are_long(dense: range) -> None:
    text = "".join(f"const icon{n} = '{'M1' * (2_000 if n in dense and not n % 4 else 4)}';\n" for n in range(400))
    progress = read_whole(text)
    assert progress.originals == {"a.js": text}
    assert not progress.unreadable


def test_a_file_with_a_line_that_no_observation_holds_is_not_known_in_part() -> None:
    progress = read_whole("".join(f"f({n});\n" if n != 150 else f"g('{'x' * ROOM}');\n" for n in range(3_000)))
    assert progress.originals == {}
    assert progress.unreadable == {"a.js"}


def test_a_list_of_files_that_was_interrupted_is_made_again() -> None:
    progress = FileProgress(task="Mend it.")

    def make() -> CmdRunAction:
        command = progress.list_files("/home/me/project")
        assert isinstance(command, CmdRunAction)
        return command

    def read() -> OutputReadAction:
        page = progress.list_files("/home/me/project")
        assert isinstance(page, OutputReadAction)
        return page

    first = make()
    progress.apply(first, CmdOutputObservation(command=first.command, exit_code=130, status="interrupted"), "")
    whole = CmdOutputObservation(command=first.command, exit_code=0, content="a.js\n", blob="b" * 64)
    progress.apply(make(), whole, "")
    progress.apply(read(), ErrorObservation(content="Not executed", error_id="interrupted"), "")
    progress.apply(read(), OutputReadObservation(output="b" * 64, content="a.js\nb.js\n", end=2, lines=2), "")
    assert progress.listed == ["a.js", "b.js"]
