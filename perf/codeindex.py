"""The code index on the sources of transformers: ``python -m perf.codeindex [FOLDER]``.

The package comes from PyPI into FOLDER, by default a temporary one, and ripgrep, if it is not here, from Debian.
Measured in turn: a full index, again after ten files have changed, and 500 queries of five kinds by a seed; beside it
ripgrep, which reads every file for every query, and a tantivy index with a document for each whole file.
"""

from __future__ import annotations

import json
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import tantivy

from handiwork.codeindex.blocks import identifiers
from handiwork.codeindex.files import SourceTree
from handiwork.codeindex.index import CodeIndex, Hit
from perf import report

PACKAGE, RIPGREP = "transformers", "ripgrep"
QUERIES, RIPGREP_QUERIES, TOUCHED, SEED = 500, 50, 10, 19
WORKERS = 2
FULL, AGAIN, SLOWEST, MEMORY = 60.0, 1.0, 20.0, 500.0
"""Targets: seconds of a full index and of one after ten changes, ms of the slowest in 100 queries, MB."""


def main() -> None:
    if sys.argv[1:2] == ["--index"]:
        print(json.dumps(full_index(Path(sys.argv[2]), Path(sys.argv[3]))))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary).resolve()
        install(folder)
        print(measure(folder / "packages" / PACKAGE, folder))


def install(folder: Path) -> None:
    """Install transformers without its dependencies, and ripgrep, once."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "packages"
    if not target.exists():
        uv = Path(sys.executable).with_name("uv")
        command = [str(uv), "pip", "install", "-q", "--no-deps", "--target", str(target), PACKAGE]
        subprocess.run(command, check=True)
    if ripgrep(folder) is None:
        subprocess.run(["apt-get", "download", "-q", RIPGREP], cwd=folder, check=True, capture_output=True)
        subprocess.run(["dpkg", "-x", str(next(folder.glob("ripgrep_*.deb"))), str(folder)], check=True)


def ripgrep(folder: Path) -> str | None:
    """Return the path of ripgrep's program, None if it is neither installed nor in the folder."""
    return shutil.which("rg") or shutil.which("rg", path=str(folder / "usr/bin"))


def measure(root: Path, folder: Path) -> str:
    """Return the figures as a page of Markdown."""
    cache = folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    command = [sys.executable, "-m", "perf.codeindex", "--index", str(root), str(cache)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    full = json.loads(done.stdout)
    index = CodeIndex(str(root), cache)
    disk = size_of(index.folder)
    again, idle = after_changes(index, root)
    queries = make_queries(index)
    ours = milliseconds(queries, lambda query: index.search(query))
    whole, seconds, searcher = whole_files(root, folder / "whole")
    theirs = milliseconds(queries, lambda query: searcher(plain_words(query)))
    program = str(ripgrep(folder))
    grep = milliseconds(queries[:: QUERIES // RIPGREP_QUERIES + 1], lambda query: run_ripgrep(program, query, root))
    counts = ", ".join(f"{count:,} {kind}" for kind, count in full["counts"].items())
    rows = [
        ("full index, s", f"{full['seconds']:.1f}", f"{seconds:.1f}", "-", met(full["seconds"], FULL)),
        (f"again after {TOUCHED} files changed, s", f"{again:.2f}", "-", "-", met(again, AGAIN)),
        ("again after nothing changed, s", f"{idle:.2f}", "-", "-", ""),
        ("query, p50, ms", *(f"{at(times, 50):.2f}" for times in (ours, theirs, grep)), ""),
        ("query, p99, ms", *(f"{at(times, 99):.2f}" for times in (ours, theirs, grep)), met(at(ours, 99), SLOWEST)),
        ("memory while indexing, MB", f"{full['memory']:.0f}", "-", "-", met(full["memory"], MEMORY)),
        ("disk, MB", f"{disk / 1e6:.0f}", f"{size_of(whole) / 1e6:.0f}", "0", ""),
    ]
    lines = ["| | Handiwork | tantivy, whole files | ripgrep | target |", "| --- | ---: | ---: | ---: | --- |"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"{report.machine()}", "", f"{full['files']:,} files: {counts}", "", *lines])


def full_index(root: Path, cache: Path) -> dict[str, object]:
    """Index everything; ``memory`` is the sum of the peaks of this process and of each worker, in MB."""
    index = CodeIndex(str(root), cache)
    began = time.perf_counter()
    index.refresh(SourceTree.of_directory(root))
    seconds = time.perf_counter() - began
    own, worker = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    memory = (own + WORKERS * worker) / 1024
    return {"seconds": seconds, "memory": memory, "counts": index.counts(), "files": index.files()}


def after_changes(index: CodeIndex, root: Path) -> tuple[float, float]:
    """Return the seconds of a refresh after changes, and of one after none; the files are as before at the end."""
    chosen = random.Random(SEED).sample(sorted(root.rglob("*.py")), TOUCHED)
    texts = {path: path.read_bytes() for path in chosen}
    for path, text in texts.items():
        path.write_bytes(text + b"\n\ndef added_for_measuring():\n    pass\n")
    times: list[float] = []
    time.sleep(0.2)  # files that have only just changed are read twice
    for _ in range(2):
        began = time.perf_counter()
        index.refresh(SourceTree.of_directory(root))
        times.append(time.perf_counter() - began)
    for path, text in texts.items():
        path.write_bytes(text)
    index.refresh(SourceTree.of_directory(root))
    return times[0], times[1]


def make_queries(index: CodeIndex) -> list[str]:
    """Return queries of five kinds: names, words of docstrings, fields, wildcards and phrases."""
    chance = random.Random(SEED)
    blocks = index.search("type: FUNCTION OR type: CLASS", 20_000).hits
    described = [hit for hit in blocks if len(words_of(hit)) >= 6]
    queries: list[str] = []
    for number in range(QUERIES):
        hit, name = chance.choice(described), chance.choice(blocks).block.name
        words = words_of(hit)
        start = chance.randrange(len(words) - 5)
        folder = hit.file_path.rpartition("/")[0]
        kinds = (
            name,
            " ".join(chance.sample(words, 6)),
            f"type: {hit.block.type} AND text: {words[start]} AND file_path: {folder or hit.file_path}",
            f"name: {name[: len(name) // 2 + 1]}*",
            f'"{words[start]} {words[start + 1]}"',
        )
        queries.append(kinds[number % len(kinds)])
    return queries


def words_of(hit: Hit) -> list[str]:
    """Return the words of a block's docstring that no query takes for an operator."""
    return [word for word in identifiers(hit.block.docstring) if word not in ("AND", "OR", "NOT")]


def whole_files(root: Path, folder: Path) -> tuple[Path, float, Callable[[str], object]]:
    """Index each file as one document; return the folder, the seconds it took, and a search by words."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("path", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", stored=True)
    index = tantivy.Index(builder.build(), str(folder))
    began = time.perf_counter()
    writer = index.writer(64 << 20, 1)
    tree = SourceTree.of_directory(root)
    for file in tree.files():
        document = tantivy.Document()
        document.add_text("path", file.path)
        document.add_text("text", tree.read(file.path).decode("utf-8", "replace"))
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    seconds = time.perf_counter() - began
    index.reload()
    searcher = index.searcher()
    return folder, seconds, lambda words: searcher.search(index.parse_query(words, ["text"]), 10)


def plain_words(query: str) -> str:
    """Return the words of a query without fields and operators."""
    return " ".join(word for word in identifiers(re.sub(r"\w+:|\bAND\b|\bOR\b", " ", query)))


def run_ripgrep(program: str, query: str, root: Path) -> None:
    """Count the lines with any of the words, file by file."""
    pattern = "|".join(identifiers(plain_words(query)))
    subprocess.run([program, "-c", "-i", pattern, str(root)], check=False, stdout=subprocess.DEVNULL)


def milliseconds(queries: Sequence[str], search: Callable[[str], object]) -> list[float]:
    """Return the sorted times of the queries, each once, after a first round of some."""
    for query in queries[:20]:
        search(query)
    times: list[float] = []
    for query in queries:
        began = time.perf_counter()
        search(query)
        times.append(1000 * (time.perf_counter() - began))
    return sorted(times)


def at(times: Sequence[float], percent: int) -> float:
    """Return a percentile of sorted times."""
    return times[min(len(times) - 1, len(times) * percent // 100)]


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def met(value: float, most: float) -> str:
    """Return a target and whether it is met."""
    return f"< {most:g}: {'met' if value < most else 'missed'}"


if __name__ == "__main__":
    main()
