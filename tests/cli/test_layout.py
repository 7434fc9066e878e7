"""Text on a terminal: the colours that programs give, and rows that break between words."""

from __future__ import annotations

import io
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from rich.text import Text

from handiwork.cli.commands.changes import overview
from handiwork.cli.terminal.layout import markdown_lines, wrapped
from handiwork.cli.terminal.sanitize import coloured_lines, plain
from handiwork.cli.terminal.view import terminal_console
from handiwork.workspace.changes import Change, Side

PIECES = (
    *("a", "b ", "\n", "\r", "\r\n", "\t", "[", "m", "\u202e"),
    *("\x1b[31m", "\x1b[0m", "\x1b[8m", "\x1b[2K", "\x1b", "\x07", "\x1b]0;title\x07", "\x9b1m"),
)


@given(st.lists(st.sampled_from(PIECES)).map("".join))
@example("\x1b\x1b]0;title\x07[m")
def test_a_coloured_text_is_the_plain_one_but_for_its_colours(text: str) -> None:
    assert "\n".join(line.plain for line in coloured_lines(text)) == plain(text)


def test_colours_last_over_lines_and_nothing_is_hidden() -> None:
    first, second = coloured_lines("\x1b[1;32mgreen\nstill\x1b[0m not \x1b[8;5mconcealed\x1b[0m")
    assert str(first.spans[0].style) == str(second.spans[0].style) == "bold color(2)"
    assert [second.plain[span.start : span.end] for span in second.spans] == ["still"]


def test_a_long_line_is_scanned_once_and_stays_whole() -> None:
    line = "a" * 2_000_000
    assert plain(line) == line
    assert [row.plain == line for row in coloured_lines(line)] == [True]


def test_a_diff_shows_all_of_a_line_that_would_write_over_itself() -> None:
    content = b"os.system('evil')\r# nice\n\x1b[8mhidden\x1b[0m\r\nend\r\r\n"
    side = Side(Path(), "a.py", 0o100644, len(content), content)
    lines = [(line.plain, line.style) for line in overview([Change("a.py", "added", None, side)], "abc")]
    start = lines.index(("@@ -0,0 +1,3 @@", "cyan")) + 1
    assert lines[start : start + 3] == [
        ("+os.system('evil')\\x0d# nice", "green"),
        ("+\\x1b[8mhidden\\x1b[0m", "green"),
        ("+end\\x0d", "green"),
    ]


@given(st.lists(st.text("abc", min_size=1, max_size=12), min_size=1, max_size=40), st.integers(20, 200))
def test_rows_fit_and_have_every_word_whole_below_the_first(words: list[str], width: int) -> None:
    console = terminal_console(io.StringIO(), is_terminal=True)
    console.width = width
    rows = [row.plain for row in wrapped(Text(f"  $ {' '.join(words)}"), console)]
    assert " ".join(rows).split() == ["$", *words]
    assert max(map(len, rows)) <= width
    assert all(row.startswith("    ") for row in rows[1:])


def test_a_message_keeps_its_tags_its_pictures_and_the_cells_of_its_tables() -> None:
    console = terminal_console(io.StringIO(), is_terminal=True)
    console.width = 60
    path = "handiwork/cli/commands/machine/a_module_with_a_long_name.py"
    message = (
        "List<String> of <name>, ![graph](a.png)\n\n<ul>\n  <li>one</li>\n</ul>\n\n"
        f"| file | fault |\n|---|---|\n| {path} | it reads a date as if it were a time |\n"
    )
    rows = [row.plain.strip() for row in markdown_lines(message, console)]
    assert rows[0] == "List<String> of <name>, ![graph](a.png)"
    assert {"<ul>", "<li>one</li>", "</ul>"} <= set(rows)
    assert path in "".join(row.partition(" ")[0] for row in rows[rows.index("</ul>") :])
