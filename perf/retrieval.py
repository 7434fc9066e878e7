"""Retrieval by a description, beside two baselines: ``python -m perf.retrieval [--dev] [FOLDER]``.

A query is the words of the first paragraph of the docstring of a public function or class at the top of a module,
without those that share a sub-word with its name. A seed draws 200 of them from each of three packages, or all if there
are fewer. A file is found if it is among the first 3 or 10. Handiwork's files are in the order of their best blocks; a
block is found if the block itself is among the first. BM25 has a tantivy document for each whole file, with English
stems. ripgrep's files are in the order of the number of query words that occur in them as words, in any case, then of
the lines that do.

The packages are popular ones of pure Python from different fields, a documentation generator, an SQL transpiler and a
graph library, and were named before anything was measured. ``--dev`` takes three others, on which the index's weights
were chosen. Both tables have the same queries; for the second, all docstrings are removed from the indexed sources. The
packages come from PyPI into FOLDER, by default a temporary one, and ripgrep, if it is not here, from Debian.
"""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import tantivy

from handiwork.codeindex.blocks import identifiers, sub_words
from handiwork.codeindex.files import SourceTree
from handiwork.codeindex.index import CodeIndex
from handiwork.evals.reporting.statistics import bootstrap
from perf.codeindex import ripgrep

FINAL, DEV = ("sphinx", "sqlglot", "networkx"), ("django", "scrapy", "pylint")
DRAWN, SEED = 200, 19
SHORTEST, LONGEST = 4, 40
"""Words of a query: of a docstring with fewer there is none, later words are left out."""
DEPTHS = (3, 10)
BLOCKS = 200
"""Blocks that are read to find the first ten files."""
OURS, WHOLE, GREP = "Handiwork", "BM25, whole files", "ripgrep"


class Definition(NamedTuple):
    """A function or class, and the words that describe it."""

    path: str
    name: str
    words: tuple[str, ...]


class Answer(NamedTuple):
    """The first files for a query; ``blocks`` are the first blocks, each with its file and name, if there are any."""

    files: Sequence[str]
    blocks: Sequence[tuple[str, str]] = ()


Search = Callable[[Sequence[str]], Answer]


@dataclass
class Ranks:
    """The 0-based places of what was looked for, one a query; None for what is not among the first."""

    files: list[int | None] = field(default_factory=list[int | None])
    blocks: list[int | None] = field(default_factory=list[int | None])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m perf.retrieval", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--dev", action="store_true", help="measure the packages that the weights were chosen on")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        install(folder, DEV if arguments.dev else FINAL)
        print("\n\n".join(tables(folder, DEV if arguments.dev else FINAL)))


def install(folder: Path, packages: Sequence[str]) -> None:
    """Install the packages without their dependencies, each with a copy without docstrings, and ripgrep, once."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        if not (folder / package).exists():
            uv = str(Path(sys.executable).with_name("uv"))
            command = [uv, "pip", "install", "-q", "--no-deps", "--target", str(folder / package), package]
            subprocess.run(command, check=True)
        bare = folder / f"{package}-bare"
        if not bare.exists():
            shutil.copytree(folder / package / package, bare / package)
            for path in bare.rglob("*.py"):
                path.write_bytes(without_docstrings(path.read_bytes()))
    if ripgrep(folder) is None:
        subprocess.run(["apt-get", "download", "-q", "ripgrep"], cwd=folder, check=True, capture_output=True)
        subprocess.run(["dpkg", "-x", str(next(folder.glob("ripgrep_*.deb"))), str(folder)], check=True)


def tables(folder: Path, packages: Sequence[str]) -> Iterator[str]:
    """Yield a table with the docstrings in the sources, and one without."""
    drawn = {package: draw(folder / package / package) for package in packages}
    for title, suffix in (("with", ""), ("without", "-bare")):
        measured: dict[str, dict[str, Ranks]] = {}
        for package in packages:
            root = folder / f"{package}{suffix}" / package
            searches = {
                OURS: by_index(root, folder / "cache"),
                WHOLE: by_whole_files(root),
                GREP: by_ripgrep(root, str(ripgrep(folder))),
            }
            measured[package] = {name: ranks(search, drawn[package]) for name, search in searches.items()}
        yield f"Sources {title} docstrings:\n\n{table(measured)}"


def draw(root: Path) -> list[Definition]:
    """Return some of a package's public functions and classes, without those of its tests."""
    described = list[Definition]()
    for path in sorted(root.rglob("*.py")):
        module = path.relative_to(root)
        if any(part.startswith("_") or "test" in part for part in module.parts):
            continue
        for node in parsed(path.read_bytes()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith(
                "_"
            ):
                words = query_words(ast.get_docstring(node) or "", node.name)
                if len(words) >= SHORTEST:
                    described.append(Definition(module.as_posix(), node.name, words))
    return random.Random(SEED).sample(described, min(DRAWN, len(described)))


def query_words(docstring: str, name: str) -> tuple[str, ...]:
    """Return the distinct words of the first paragraph that share no sub-word with the name, in lower case."""
    told = {part.lower() for part in sub_words(name)} | {name.lower()}
    words = dict.fromkeys(
        word.lower()
        for word in identifiers(docstring.partition("\n\n")[0])
        if len(word) > 1 and not told & {word.lower(), *(part.lower() for part in sub_words(word))}
    )
    return tuple(words)[:LONGEST]


def parsed(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def without_docstrings(source: bytes) -> bytes:
    """Return Python with an empty string in the place of each docstring; what cannot be parsed stays as it is."""
    try:
        module = parsed(source)
    except (SyntaxError, ValueError):
        return source
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    spans = list[tuple[int, int]]()
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(
            node, clean=False
        ):
            text = node.body[0]
            end = starts[(text.end_lineno or 0) - 1] + (text.end_col_offset or 0)
            spans.append((starts[text.lineno - 1] + text.col_offset, end))
    for start, end in sorted(spans, reverse=True):
        source = source[:start] + b'""' + source[end:]
    return source


def by_index(root: Path, cache: Path) -> Search:
    """Return the search of Handiwork's index."""
    index = CodeIndex(str(root), cache)
    index.refresh(SourceTree.of_directory(root))

    def search(words: Sequence[str]) -> Answer:
        hits = index.search(" ".join(words), BLOCKS).hits
        return Answer(
            list(dict.fromkeys(hit.file_path for hit in hits)), [(hit.file_path, hit.block.name) for hit in hits]
        )

    return search


def by_whole_files(root: Path) -> Search:
    """Return a search by BM25 in which each file is one document."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("path", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", tokenizer_name="en_stem")
    index = tantivy.Index(builder.build())
    writer = index.writer(64 << 20, 1)
    tree = SourceTree.of_directory(root)
    for file in tree.files():
        writer.add_document(tantivy.Document(path=file.path, text=tree.read(file.path).decode("utf-8", "replace")))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(words: Sequence[str]) -> Answer:
        hits = searcher.search(index.parse_query(" ".join(words), ["text"]), max(DEPTHS)).hits
        return Answer([str(searcher.doc(address).get_first("path")) for _, address in hits])

    return search


def by_ripgrep(root: Path, program: str) -> Search:
    """Return a search for the files with the most words; each word is searched for once."""
    lines_by_word = dict[str, dict[str, int]]()
    files = [file.path for file in SourceTree.of_directory(root).files()]

    def lines_with(word: str) -> dict[str, int]:
        command = [program, "--no-config", "--no-ignore", "-0", "-c", "-i", "-w", "-F", "-e", word, *files]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        rows = [line.split("\0") for line in done.stdout.splitlines()]
        return {path: int(count) for path, count in rows}

    def search(words: Sequence[str]) -> Answer:
        found = dict[str, tuple[int, int]]()
        for word in words:
            if word not in lines_by_word:
                lines_by_word[word] = lines_with(word)
            for path, lines in lines_by_word[word].items():
                one, other = found.get(path, (0, 0))
                found[path] = one + 1, other + lines
        return Answer(sorted(found, key=lambda path: (*(-count for count in found[path]), path)))

    return search


def ranks(search: Search, drawn: Sequence[Definition]) -> Ranks:
    """Return the places of the definitions and of their files among the answers."""
    found = Ranks()
    for definition in drawn:
        answer = search(definition.words)
        found.files.append(place(definition.path, answer.files))
        found.blocks.append(place((definition.path, definition.name), answer.blocks))
    return found


def place(looked_for: object, answers: Sequence[object]) -> int | None:
    return answers.index(looked_for) if looked_for in answers else None


def table(measured: dict[str, dict[str, Ranks]]) -> str:
    """Return the recalls as Markdown, and how far Handiwork's is above the better of the others, with its interval."""
    depths = [f"at {depth}" for depth in DEPTHS]
    lines = ["| | " + " | ".join(f"{package}, {depth}" for package in [*measured, "all"] for depth in depths) + " |"]
    lines.append("| --- |" + " ---: |" * (len(lines[0].split("|")) - 3))
    rows = {f"{name}, file": [found[name].files for found in measured.values()] for name in (OURS, WHOLE, GREP)}
    rows |= {f"{OURS}, block": [found[OURS].blocks for found in measured.values()]}
    for name, parts in rows.items():
        places = [*parts, [one for part in parts for one in part]]
        lines.append(f"| {name} | {' | '.join(f'{recall(one, depth):.1%}' for one in places for depth in DEPTHS)} |")
    for other in (WHOLE, GREP):
        gains = [", ".join(gain(rows[f"{OURS}, file"], rows[f"{other}, file"], depth)) for depth in DEPTHS]
        for depth, text in zip(DEPTHS, gains, strict=True):
            lines.append(f"\n{OURS} above {other}, files, at {depth}: {text}")
    return "\n".join(lines)


def recall(places: Sequence[int | None], depth: int) -> float:
    return sum(one is not None and one < depth for one in places) / len(places)


def gain(ours: Sequence[Sequence[int | None]], theirs: Sequence[Sequence[int | None]], depth: int) -> Iterator[str]:
    """Yield the mean difference of recall over all queries, and its paired 95 % interval, in percentage points."""
    pairs = [pair for one, other in zip(ours, theirs, strict=True) for pair in zip(one, other, strict=True)]
    differences = [100 * (recall([mine], depth) - recall([other], depth)) for mine, other in pairs]
    low, high = bootstrap(differences)
    yield f"{sum(differences) / len(differences):+.1f} points"
    yield f"95 % interval {low:+.1f} to {high:+.1f}"


if __name__ == "__main__":
    main()
