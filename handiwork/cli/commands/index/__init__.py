"""The declaration of ``handiwork index``; command.py carries it out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from handiwork.cli.command import command
from handiwork.cli.options import AsJson


def add_to(app: typer.Typer) -> None:
    """Add the command to the program."""

    @command(app, "index.command:index")
    def index(
        path: Annotated[
            Path | None, typer.Argument(metavar="[PATH]", help="The folder of the codebase, by default this one.")
        ] = None,
        module: Annotated[
            str | None,
            typer.Option("--module", help="Instead of PATH: a module of the python on your PATH."),
        ] = None,
        search: Annotated[
            str | None,
            typer.Option("--search", metavar="QUERY", help="Show the blocks that match, the best first."),
        ] = None,
        memory: Annotated[
            bool, typer.Option("--memory", help="Show what CodeNavAgent remembers of earlier tasks with it.")
        ] = False,
        forget: Annotated[bool, typer.Option("--forget", help="Clear that memory.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """Index the code blocks of a codebase, and search them in Lucene's syntax.

        Only files that have changed since the last time are read; nothing is written into the codebase. Without
        --search the blocks are counted by type. The fields are text, type, file_path, lines, name, prototype and
        docstring; docs/codeindex.md describes queries.

        \b
        handiwork index
        handiwork index ~/src/project --search 'type: CLASS AND text: ObjectDetection'
        handiwork index --module transformers --search 'name: load* AND file_path: models/bert'
        """
