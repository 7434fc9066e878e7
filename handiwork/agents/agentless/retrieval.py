"""Retrieval: the files that match the issue best, by BM25 in the sandbox or by the embeddings of a model."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence

from handiwork.agents.agentless.structure import CODE, named_path
from handiwork.agents.repair.files import LIST

CHUNK = 50
"""Lines of a chunk: a file ranks by its best chunk."""

MOST_WORDS, MOST_FILES = 300, 100
"""Words of a query, and files found."""

LONGEST_TEXT, MOST_CHUNKS = 2_000, 1_000
"""Characters of a text that is embedded, which small models take whole, and chunks that are embedded."""

_SATURATION, _LENGTH = 1.2, 0.75
"""BM25's k1 and b."""

_STOP_WORDS = (
    "a about all also an any and are as at be been but by can could do does for from get gets has have how i if in "
    "into is it its just like me my no not of on one only or other our out should so some such than that the their "
    "them then there these they this to too use used using was we were what when where which while will with without "
    "would you your"
)
"""Words of English that are rare in code and tell nothing of an issue."""

_TESTS = r"(^|/)(tests?|testing|specs?|__tests__)/|(^|/)(test|conftest)[_.]|[_.-](test|spec)\."

BM25 = r"""
BEGIN { count = split(query, words, " "); for (i = 1; i <= count; i++) wanted[words[i]] = 1 }
{
    number = 0; chunk = ""
    while ((getline line < $0) > 0) {
        if (number++ % size == 0) { chunk = ++chunks; path[chunk] = $0 }
        gsub(/[^A-Za-z0-9]+/, " ", line)
        found = split(tolower(line), parts, " ")
        lengths[chunk] += found; total += found
        for (i = 1; i <= found; i++) if (parts[i] in wanted)
            if (times[parts[i], chunk]++ == 0) having[parts[i]]++
    }
    close($0)
}
END {
    average = (chunks && total) ? total / chunks : 1
    for (pair in times) {
        split(pair, key, SUBSEP); word = key[1]; chunk = key[2]
        weight = log(1 + (chunks - having[word] + 0.5) / (having[word] + 0.5))
        score[chunk] += weight * times[pair] * (k + 1) / (times[pair] + k * (1 - b + b * lengths[chunk] / average))
    }
    for (chunk in score) if (score[chunk] > best[path[chunk]]) best[path[chunk]] = score[chunk]
    for (file in best) printf "%.4f %s\n", best[file], file
}
"""
"""Ranks the files whose paths it reads, in any POSIX awk."""


def retrieval_command(task: str, folders: Sequence[str]) -> str:
    """Return the command that prints the programs that fit the task best, a score and a path a line.

    Tests and the irrelevant ``folders`` are left out.
    """
    # An identifier counts whole and by its parts: HeaderCard is headercard, header and card.
    split = re.sub(r"([a-z])([A-Z])", r"\1 \2", task)
    stops = _STOP_WORDS.split()
    found = dict.fromkeys(re.findall(r"[a-z0-9]{2,}", f"{task} {split}".lower()))
    words = [word for word in found if word not in stops][:MOST_WORDS]
    suffixes = "|".join(sorted(suffix[1:] for suffix in CODE))
    left_out = "|".join([_TESTS, *(f"^{_escaped(folder)}/" for folder in folders)])
    values = f"-v query={shlex.quote(' '.join(words))} -v size={CHUNK} -v k={_SATURATION} -v b={_LENGTH}"
    return (
        f"{LIST} | grep -i -E '\\.({suffixes})$' | grep -v -E {shlex.quote(left_out)} | "
        f"LC_ALL=C awk {values} {shlex.quote(BM25)} | sort -k 1,1nr -k 2 | head -n {MOST_FILES}"
    )


def retrieved_files(output: str, programs: Sequence[str]) -> list[str]:
    """Return the programs of the command's output, the best first."""
    paths = (line.partition(" ")[2] for line in output.splitlines())
    return [path for path in paths if path in programs]


def chunks_of(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the paths and the texts of the files' chunks that have text; each text begins with the path."""
    chunks: list[tuple[str, str]] = []
    for path, text in texts.items():
        lines = text.split("\n")
        parts = ("\n".join(lines[start : start + CHUNK]) for start in range(0, len(lines), CHUNK))
        chunks += [(path, f"{path}\n{part}"[:LONGEST_TEXT]) for part in parts if part.strip()]
    return chunks[:MOST_CHUNKS]


def nearest_files(query: Sequence[float], vectors: Sequence[tuple[str, Sequence[float]]], most: int) -> list[str]:
    """Return the ``most`` files with the chunks whose vectors are most like the query's by their cosine."""
    best: dict[str, float] = {}
    for path, vector in vectors:
        product = sum(a * b for a, b in zip(query, vector, strict=True))
        best[path] = max(best.get(path, -1.0), product / (math.hypot(*query) * math.hypot(*vector) or 1.0))
    return sorted(best, key=lambda path: -best[path])[:most]


def named_files(reply: str, programs: Sequence[str], most: int) -> list[str]:
    """Return the programs that a reply names, one a line."""
    found = (named_path(line, programs) for line in reply.splitlines())
    return list(dict.fromkeys(path for path in found if path is not None))[:most]


def named_folders(reply: str, programs: Sequence[str]) -> list[str]:
    """Return the folders that a reply names, one a line, if they have programs and are not all that has some."""
    words = (line.strip(" \t`*-").rstrip("/") for line in reply.splitlines())
    named = [word for word in dict.fromkeys(words) if word and any(path.startswith(f"{word}/") for path in programs)]
    return named if any(not is_below(path, named) for path in programs) else []


def is_below(path: str, folders: Sequence[str]) -> bool:
    """Return whether the path is in one of the folders."""
    return any(path.startswith(f"{folder}/") for folder in folders)


def combined(first: Sequence[str], second: Sequence[str], most: int) -> list[str]:
    """Return the ``most`` files that the heads of both lists name most often, those of the first list before others."""
    return [path for path, _ in Counter([*first[:most], *second[:most]]).most_common(most)]


def _escaped(text: str) -> str:
    return re.sub(r"([][\\.^$*+?(){}|])", r"\\\1", text)
