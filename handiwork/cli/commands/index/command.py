"""``handiwork index``: bring the index of a codebase up to date, count its blocks and search them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from handiwork.cli.errors import say
from handiwork.cli.terminal.jsonlines import write_json
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.view import terminal_console
from handiwork.errors import Exit, WorkspaceError
from handiwork.events.observation import NOT_EXACT
from handiwork.paths import data_dir
from handiwork.session.storage.code_memory import CodeMemory

if TYPE_CHECKING:
    from handiwork.codeindex.files import SourceTree
    from handiwork.codeindex.index import CodeIndex, Hit, Hits

SHOWN = 10
"""Blocks that a search shows."""
PROBLEMS = 5
"""Files that could not be read, or not as a whole, and are named."""

NO_EXTRA = "handiwork index needs the extra 'index': install it with pip install 'handiwork[index]'"

# The module itself is not imported, and neither are its packages: those of a dotted name are folders.
_FIND = (
    "import importlib.machinery, sys; spec = importlib.machinery.PathFinder.find_spec(sys.argv[1]); "
    "print('' if spec is None else [*(spec.submodule_search_locations or [spec.origin or ''])][0])"
)


def index(path: Path | None, module: str | None, search: str | None, memory: bool, forget: bool, as_json: bool) -> Exit:
    """Index ``path``, or an installed ``module``, and show the blocks that match ``search``, or counts.

    With ``memory`` or ``forget``, only show or clear the agents' memory of it. Raises WorkspaceError.
    """
    if memory or forget:
        return _show_memory(path, module, search, forget, as_json)
    try:
        from handiwork.codeindex.files import SourceTree
        from handiwork.codeindex.index import CodeIndex
        from handiwork.codeindex.query import QueryError, parse_query
    except ImportError as error:
        raise WorkspaceError(NO_EXTRA) from error
    if path is not None and module is not None:
        raise WorkspaceError("PATH and --module name two codebases: leave one of them out")
    root = _module_source(module) if module is not None else _resolved(path)
    if module is None and not root.is_dir():
        raise WorkspaceError(f"{root} is not a directory: name the folder of a codebase")
    codes = CodeIndex(str(root))
    try:
        if search is not None:
            parse_query(search)  # report a broken query before reading anything
        began = time.monotonic()
        tree = SourceTree.of_directory(root) if root.is_dir() else SourceTree.of_file(root)
        refreshed = codes.refresh(tree)
        changes = {"read": refreshed.read, "removed": refreshed.removed}
        if done := [f"{verb} {_number(count, 'file')}" for verb, count in changes.items() if count]:
            say(f"{' and '.join(done)} in {time.monotonic() - began:.1f} s")
        hits = None if search is None else codes.search(search, SHOWN)
    except QueryError as error:
        raise WorkspaceError(str(error)) from error
    if hits is not None:
        _show_hits(hits, as_json)
    else:
        _show_counts(codes, tree, as_json)
    return Exit.FINISHED


def _resolved(path: Path | None) -> Path:
    return (path or Path()).expanduser().resolve()


def _show_memory(path: Path | None, module: str | None, search: str | None, forget: bool, as_json: bool) -> Exit:
    """Show, or clear, the memory of the codebase in a folder. Raises WorkspaceError."""
    if module is not None or search is not None:
        raise WorkspaceError("--memory and --forget are about the codebase in PATH alone: leave --module, --search out")
    root = _resolved(path)
    memory = CodeMemory(data_dir(), str(root))
    try:
        if forget:
            say(f"forgot {_amount(*memory.clear())} of {plain(str(root))}")
            return Exit.FINISHED
        episodes, docstrings = memory.episodes(), memory.docstrings()
    except OSError as error:
        raise WorkspaceError(f"the memory of {root} cannot be used: {error}") from error
    console = terminal_console()
    for episode in episodes:
        if as_json:
            write_json(episode.model_dump_json())
            continue
        console.print(Text(plain(episode.task), "bold"), soft_wrap=True)
        for block in episode.blocks:
            console.print(Text(f"    {plain(block.file_path)}: {plain(block.prototype)}"), soft_wrap=True)
    if not as_json:
        amount = _amount(len(episodes), len(docstrings))
        console.print(Text(f"{amount} remembered of {plain(str(root))}.", "dim"), soft_wrap=True)
    return Exit.FINISHED


def _amount(tasks: int, docstrings: int) -> str:
    return f"{_number(tasks, 'task')} and {_number(docstrings, 'docstring')}"


def _module_source(module: str) -> Path:
    """Return the folder or the file of an installed module, of the project's Python: nothing of the module runs."""
    name, *below = module.split(".")
    python = shutil.which("python") or shutil.which("python3") or sys.executable
    try:
        command = [python, "-I", "-c", _FIND, name]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise WorkspaceError(f"{python} cannot look for the module {module}: {error}") from error
    source = Path(ended.stdout.strip() or "/nonexistent").joinpath(*below)
    if not source.exists():
        source = source.with_name(f"{source.name}.py")
    if not source.exists():
        raise WorkspaceError(
            f"{python} has no module {module}: install it there, or activate the environment that has it"
        )
    if source.is_file() and source.suffix != ".py":
        raise WorkspaceError(f"the module {module} has no Python source: it is {source}")
    return source.resolve()


def _show_counts(codes: CodeIndex, tree: SourceTree, as_json: bool) -> None:
    from handiwork.codeindex import statistics
    from handiwork.codeindex.blocks import BLOCKS

    counts, problems, python = codes.counts(), codes.problems(), statistics.count(codes, tree)
    cut = codes.cut_files()
    if as_json:
        row = {"path": codes.name, "files": codes.files(), "blocks": counts, "problems": problems, "cut": cut}
        row["python"] = python._asdict()
        write_json(json.dumps(row, ensure_ascii=False))
        return
    console = terminal_console()
    total, files = sum(counts.values()), codes.files()
    heading = f"{_number(total, 'block')} of {_number(files, 'file')} in {plain(codes.name)}"
    console.print(Text(heading), soft_wrap=True)
    for kind, count in counts.items():
        console.print(Text(f"{count:>9,}  {kind}"))
    if python.files:
        numbers = ", ".join(f"{value:,} {name}" for name, value in python._asdict().items())
        console.print(Text(f"Python, as the CodeNav paper counts: {numbers}", "dim"), soft_wrap=True)
    for file, why in list(problems.items())[:PROBLEMS]:
        console.print(Text(f"not read: {plain(file)}: {plain(why)}", "yellow"), soft_wrap=True)
    if len(problems) > PROBLEMS:
        console.print(Text(f"not read: {len(problems) - PROBLEMS} more files", "yellow"))
    for file in cut[:PROBLEMS]:
        console.print(
            Text(f"cut: {plain(file)}: only its first {BLOCKS:,} blocks are indexed", "yellow"), soft_wrap=True
        )
    if len(cut) > PROBLEMS:
        console.print(Text(f"cut: {len(cut) - PROBLEMS} more files", "yellow"))


def _show_hits(hits: Hits, as_json: bool) -> None:
    if as_json:
        for hit in hits.hits:
            row = {"file_path": hit.file_path, **hit.block._asdict(), "score": round(hit.score, 3), "code": hit.code}
            write_json(json.dumps(row, ensure_ascii=False))
        return
    console = terminal_console()
    for hit in hits.hits:
        for line in _lines(hit):
            console.print(line, soft_wrap=True)
    if hits.extended:
        console.print(Text(NOT_EXACT, "dim"))
    shown = f", the best {len(hits.hits)} are shown" if hits.total > len(hits.hits) else ""
    matching = f"{_number(hits.total, 'block')} match{'es' if hits.total == 1 else ''}"
    console.print(Text(f"{matching}{shown}.", "dim"), soft_wrap=True)


def _number(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def _lines(hit: Hit) -> Iterator[Text]:
    block = hit.block
    place = Text(f"{plain(hit.file_path)}:{block.first}-{block.last}", "bold").append(f"  {block.type}", "dim")
    yield place
    yield Text(f"    {plain(block.prototype or hit.code.partition(chr(10))[0][:200])}")
    if block.docstring:
        yield Text(f"    {plain(block.docstring.partition(chr(10))[0][:200])}", "dim")
