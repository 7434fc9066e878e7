"""The fenced code blocks of the documentation, with the marks that stand before them in a page's source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
LANGUAGES = ("sh", "python", "toml")
"""The languages of blocks that the tests run."""
THINGS = ("a project", "hosted models", "weights")
"""What the tests prepare for a block that is marked ``with`` it."""
MARK = re.compile(r"<!-- ([\w ]+):(.*)-->")
FENCE = re.compile(r"\s*(?:```+|~~~+)(.*)")


@dataclass(frozen=True)
class Block:
    """A fenced block: ``place`` is like "README.md:9", ``marks`` are pairs like ("slow", "needs the weights")."""

    place: str
    language: str
    text: str
    marks: tuple[tuple[str, str], ...]

    def mark(self, kind: str) -> str | None:
        """Return the text of a mark, None if the block does not bear it."""
        return dict(self.marks).get(kind)

    @property
    def runs(self) -> bool:
        """Whether the tests run it."""
        return self.mark("not run") is None


def blocks_of(name: str, page: str) -> list[Block]:
    """Return the blocks of a page's source. Raises ValueError if a fence is not closed."""
    lines = page.splitlines()
    fences = [(number, fence[1].strip()) for number, line in enumerate(lines) if (fence := FENCE.fullmatch(line))]
    if len(fences) % 2:
        raise ValueError(f"{name}:{fences[-1][0] + 1}: a fence without its other half")
    return [
        Block(
            f"{name}:{start + 1}",
            language,
            "".join(f"{line}\n" for line in lines[start + 1 : end]),
            _marks(lines[:start]),
        )
        for (start, language), (end, _) in zip(fences[::2], fences[1::2], strict=True)
    ]


def _marks(lines: list[str]) -> tuple[tuple[str, str], ...]:
    marks: list[tuple[str, str]] = []
    while lines and (mark := MARK.fullmatch(lines.pop())):
        marks.append((mark[1], mark[2].strip()))
    return tuple(marks)


def faults(block: Block) -> list[str]:
    """Return what is wrong with the marks of a block."""
    found: list[str] = []
    kinds = [kind for kind, _ in block.marks]
    if block.runs and block.language not in LANGUAGES:
        found.append(f"no test runs the language {block.language!r}, and the page does not say why not")
    if not block.runs and len(kinds) > 1:
        found.append("a block that is not run needs one mark")
    for kind, text in block.marks:
        if kind not in ("not run", "slow", "with", "fails"):
            found.append(f"there is no mark {kind!r}")
        elif kind == "with" and text not in THINGS:
            found.append(f"the tests cannot prepare {text!r}")
        elif kind != "with" and len(text.split()) < 4:
            found.append(f"{text!r} is no reason why it is {kind}")
    return [f"{block.place}: {fault}" for fault in found]


BLOCKS = {page: blocks_of(str(page.relative_to(CHECKOUT)), page.read_text()) for page in PAGES}
