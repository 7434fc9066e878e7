"""The layout of text on a terminal: rows that break between words and keep their indentation, and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from handiwork.cli.terminal.sanitize import plain
from handiwork.events.action import MessageAction

if TYPE_CHECKING:
    from rich.markdown import Markdown

_SPEAKERS = {
    "user": ("\nyou: ", "bold green"),
    "agent": ("  agent: ", "bold"),
    "environment": ("  to the agent: ", "dim"),
}

_INDENTATION = re.compile(r"\s*(?:(?:[-+*•$&<>|]|>>>|\.\.\.|\d+[.)])\s+|(?:you|agent): |[a-z]+ {2,})?")
"""The beginning of a line below which its further rows begin: blanks, and a prompt, bullet, speaker or label."""


def wrapped(line: Text, console: Console) -> list[Text]:
    """Return the lines of a text as rows that fit the console, broken between words, with the line's indentation."""
    width, rows = console.width, list[Text]()
    for part in line.split("\n", allow_blank=True) if "\n" in line.plain else [line]:
        part.expand_tabs(8)
        if part.cell_len <= width:
            rows.append(part)
            continue
        found = _INDENTATION.match(part.plain)
        indent = min(found.end() if found else 0, width // 2)
        first, body = part[:indent], part[indent:]
        start = Text(" " * first.cell_len)
        for number, row in enumerate(body.wrap(console, width - start.cell_len)):
            row.rstrip()
            rows.append((start if number else first).copy().append_text(row))
    return rows


def speech_lines(message: MessageAction, console: Console | None) -> Iterator[Text]:
    """Yield the lines of a message with its speaker; with ``console``, a terminal, the agent's Markdown is laid out."""
    speaker = _SPEAKERS[message.source]
    if console is not None and message.source == "agent":
        rows = list(markdown_lines(message.content, console))
        yield from rows if len(rows) > 1 else (Text.assemble(speaker, row[2:]) for row in rows)
    else:
        yield Text.assemble(speaker, plain(message.content))
    for image in message.images:
        yield Text(f"  (an image, {image.media_type})", "dim")


def markdown_lines(text: str, console: Console, style: str = "") -> Iterator[Text]:
    """Yield the indented rows of a text in Markdown, with its code highlighted in the terminal's own colours."""
    options = console.options.update(width=max(20, console.width - 2))
    markdown = _markdown_type()(plain(text).strip(), code_theme="ansi_dark", hyperlinks=False)
    _keep_tags(markdown)
    for segments in console.render_lines(markdown, options, pad=False):
        row = Text("  ", style)
        for segment in segments:
            row.append(segment.text, segment.style)
        row.rstrip()
        yield row


def _keep_tags(markdown: Markdown) -> None:
    """Make text of what rich leaves out: tags, such as the <T> of a List<T>, and the addresses of pictures."""
    for part in (child for token in markdown.parsed for child in token.children or ()):
        if part.type == "image":
            part.content = f"![{part.content}]({part.attrs.get('src', '')})"
        if part.type in ("html_inline", "image"):
            part.type = "text"


@cache
def _markdown_type() -> type[Markdown]:
    """Return rich's Markdown with headings at the left, lines of HTML as code, and whole cells of tables."""
    # Imported late: only an agent's messages need the parser and the highlighter.
    from rich.markdown import CodeBlock, Heading, Markdown, TableElement
    from rich.table import Table

    class LeftHeading(Heading):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            self.text.justify = "left"
            yield self.text

    class WholeTable(TableElement):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            for table in super().__rich_console__(console, options):
                for column in table.columns if isinstance(table, Table) else ():
                    column.overflow = "fold"  # rich would cut a path that is wider than its column
                yield table

    class AgentMarkdown(Markdown):
        elements: ClassVar = {
            **Markdown.elements,
            "heading_open": LeftHeading,
            "table_open": WholeTable,
            "html_block": CodeBlock,
        }

    return AgentMarkdown
