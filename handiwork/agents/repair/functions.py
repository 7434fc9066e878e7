"""The functions, constants and lines of a source file in any language, found by keyword, bracket and indentation."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

LINES = 400
"""Maximum number of lines offered."""

LONGEST_LINE = 500
"""Characters of the longest line that can be a function's header."""

LONGEST_SIGNATURE = 1_000
"""Characters of the longest header of several lines."""

_UNFINISHED = re.compile(r"(?:\(\{?|,)[ \t]*(?://.*|/\*.*)?$")
"""Ends a line whose parameters continue in the next one."""

_ANNOTATION = r"[ \t]*(?::[^=;]+)?"
_PARAMETERS = r"\((?:[^()#]|\([^()]*\))*\)"
_BOUND = rf"(?:async[ \t]*)?(?:(?:function\b[^()]*)?{_PARAMETERS}{_ANNOTATION}(?:=>|\{{)|\w+[ \t]*=>)"
_MODIFIERS = r"(?:(?:public|private|protected|static|readonly|override|async)[ \t]+)*"
_HEADERS = (
    re.compile(
        r"^[ \t]*(?:[\w@]+(?:\([\w: ]*\))?[ \t]+)*?(?:def|func|fn|function|fun|sub|defp)[ \t]+"
        r"(?:\((?:\w+[ \t]+)?\*?(?P<owner>\w+)[^)]*\)[ \t]*)?(?P<name>\w+)"
    ),
    re.compile(
        rf"^[ \t]*(?:export[ \t]+)?(?:const|let|var)[ \t]+(?P<name>\w+){_ANNOTATION}=[ \t]*"
        rf"(?:{_BOUND}|(?:async[ \t]*)?function\b)"
    ),
    re.compile(r"^[ \t]*(?P<name>[\w-]+)[ \t]*\([ \t]*\)[ \t]*\{"),
    re.compile(
        r"^(?:[ \t]*(?![:,] )(?:[\w:<>,*&\[\]]+[ \t]+)+[*&]*|(?=\w+::))(?:\w+<[^()]*>::)?(?P<name>[\w:~]+)[ \t]*"
        r"\([^;{}]*\)[^;{}=]*(?<!,)\{?$"
    ),
    re.compile(r"^(?P<name>[\w:~]+)[ \t]*\([^;{}]*\)[^;{}=]*$"),
    re.compile(rf"^[ \t]+{_MODIFIERS}[*#]?(?P<name>\w+)(?:<[^()]*>)?[ \t]*\([^;]*\)[ \t]*(?::[^;=]+)?\{{$"),
    re.compile(rf"^(?:[ \t]*(?:[\w$]+\.)+|[ \t]+{_MODIFIERS}#?)(?P<name>\w+){_ANNOTATION}=[ \t]*{_BOUND}"),
)
"""Headers: a keyword, Go's receiver and a name; a variable bound to a function; a shell function; C and Java; C with
the type on the line before; a method of JavaScript; a property bound to a function.

C's do not end with a comma, as one of Rust's bounds does.
"""

_BRACED = _HEADERS[3:5]
"""Headers only of what has a body: prototypes and calls look the same."""

_CONSTANT = re.compile(
    r"^(?:\#[ \t]*define[ \t]+(\w+)[ \t(]"
    r"|(?:[\w:<>,*&]*[\w>*&][ \t]+){0,5}"
    r"[$@]?(\w+)(?:\[\w*\])*[ \t]*(?::[^=\n]+)?:?=(?![=>~]))"
)
"""A name at the beginning of a line, with its modifiers and types, and the value that it is bound to."""

_STATEMENTS = {
    *("if", "for", "while", "switch", "catch", "return", "else", "do", "new", "throw", "match", "elif", "with"),
    *("foreach", "elseif", "try", "synchronized", "using", "case"),
}
_CLASS = re.compile(
    r"^(?![ \t]*(?:\w+[ \t]+)*(?:struct|union|enum)[ \t]+\w+(?:[ \t]*[*&]|[ \t]+\w+[ \t]*[;=,(\[]))"
    r"[ \t]*(?:type[ \t]+(?=\w+(?:\[[^\]]*\])?[ \t]+(?:struct|interface)\b)|(?:\w+(?:\([\w: ]*\))?[ \t]+)*?"
    r"(?:class|struct|enum(?:[ \t]+(?:class|struct))?|union|interface|module|object|trait)[ \t]+"
    r"|(?:unsafe[ \t]+)?impl(?:<.*?>)?[ \t]+(?:[^{]*?[ \t]for[ \t]+)?(?:\w+::)*)(\w+)"
)
"""The header of a class and the like; in C, a variable or a function of a structure's type is none.

For Rust's ``impl``, with or without a trait, the name is the type's.
"""

_OUTLINE = re.compile(r"""(?:.*\n)*?.*[:{]\s*(?:\n|\Z)(?:\s*(\"{3}|'{3})(?:.|\n)*?\1\s*\n)?""")

_STRING = re.compile(
    r"""(\"{3}|'{3})(?:\\.|[^\\])*?\1|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?:#|//)[^\n]*""", re.DOTALL
)
_DIRECTIVE = re.compile(r"#[ \t]*(?:if|ifdef|ifndef|elif|else|endif|define|undef|pragma|include|error|warning)\b")
_TEST_MARK = re.compile(r"^[ \t]*#\[(?:cfg\(test\)|(?:\w+::)*(?:r?test|test_case)\b)")
_BEFORE_ITEM = re.compile(r"\s*(?:#\[|//)")
"""An attribute or a comment between the mark of a test and the test."""
_LABEL = re.compile(r"[A-Za-z_]\w*:(?!:)")


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines ``first`` to ``last`` of a file, 0-based and inclusive; ``text`` is how a model sees them."""

    text: str
    first: int
    last: int


def functions(text: str) -> dict[str, Lines]:
    """Return the functions of a file by name, the first of each name, with ``text`` as in the file."""
    by_name: dict[str, Lines] = {}
    for name, place in every_function(text):
        by_name.setdefault(name, place)
    return by_name


def every_function(text: str) -> Iterator[tuple[str, Lines]]:
    """Yield the functions of a file with their names, of which several may be the same.

    A function inside a class is named ``Class.function``. It starts at the line with its header and ends with the last
    line that is indented deeper, or the closing bracket or ``end`` after it. Labels, directives of a preprocessor and
    the lines of a string do not end it.
    """
    lines = text.splitlines()
    quoted = _quoted(lines)
    for number in range(len(lines)):
        name = _header(lines, number)
        if name is not None:
            last = _end(lines, number, quoted)
            place = Lines("\n".join(lines[number : last + 1]), number, last)
            yield ".".join([*_classes(lines, number), name]), place


def constants(text: str) -> dict[str, Lines]:
    """Return the values that a file binds to names outside of functions and classes, the first of each name."""
    lines, by_name = text.splitlines(), functions(text)
    inside = {number for place in by_name.values() for number in range(place.first, place.last + 1)}
    found: dict[str, Lines] = {}
    quoted = _quoted(lines)
    for number, line in enumerate(lines):
        match = _CONSTANT.match(line) if number not in inside and len(line) <= LONGEST_LINE else None
        name = (match[1] or match[2]) if match else ""
        if name and name not in found and name not in by_name:
            last = _end(lines, number, quoted)
            last += last + 1 < len(lines) and lines[last + 1].startswith(")")
            found[name] = Lines("\n".join(lines[number : last + 1]), number, last)
    return found


def classes(text: str) -> dict[str, Lines]:
    """Return the classes, structures, traits and the like of a file, the first of each name."""
    by_name: dict[str, Lines] = {}
    for name, place in every_class(text):
        by_name.setdefault(name, place)
    return by_name


def every_class(text: str) -> Iterator[tuple[str, Lines]]:
    """Yield the classes of a file with their names, of which several may be the same: a type of Rust and its impls."""
    lines = text.splitlines()
    quoted = _quoted(lines)
    for number, line in enumerate(lines):
        match = _CLASS.match(line) if len(line) <= LONGEST_LINE else None
        if match is not None:
            last = _end(lines, number, quoted)
            yield match[1], Lines("\n".join(lines[number : last + 1]), number, last)


def definitions(text: str) -> dict[str, Lines]:
    """Return the functions and constants of a file by name, without those of its tests."""
    inside = {number for test in inline_tests(text) for number in range(test.first, test.last + 1)}
    found = {**functions(text), **constants(text)}
    return {name: lines for name, lines in found.items() if lines.first not in inside}


def inline_tests(text: str) -> list[Lines]:
    """Return the tests inside a file of code, as Rust has them: the functions and modules marked as such."""
    lines = text.splitlines()
    quoted = _quoted(lines)
    found: list[Lines] = []
    for number in (number for number, line in enumerate(lines) if _TEST_MARK.match(line)):
        if found and number <= found[-1].last:
            continue
        item = next((n for n in range(number, len(lines)) if not _BEFORE_ITEM.match(lines[n])), number)
        last = _end(lines, item, quoted)
        found.append(Lines("\n".join(lines[number : last + 1]), number, last))
    return found


def bare(name: str) -> str:
    """Return a function's name without its class."""
    return re.split(r"\.|::", name)[-1]


def outline(function: str) -> str:
    """Return a function without its body: its signature and docstring."""
    header = _OUTLINE.match(function)
    head = header[0] if header else function.splitlines()[0]
    indent = len(head) - len(head.lstrip()) + 4
    return f"{head.rstrip()}\n{' ' * indent}..."


def choices(text: str) -> dict[str, Lines]:
    """Return a file's replaceable lines by their text without indentation; a repeated line includes the next ones."""
    lines = text.splitlines()
    stripped = [line.strip() for line in lines]
    count = Counter(stripped)
    by_text: dict[str, Lines] = {}
    for number, line in enumerate(stripped[:LINES]):
        last = number
        while line and count[line] > 1 and last + 1 < len(stripped):
            last += 1
            line = f"{line}\n{stripped[last]}"
            count[line] += sum(_is_block_at(stripped, line, other) for other in range(len(stripped)))
        if line and count[line] == 1:
            by_text[line] = Lines(line, number, last)
    return by_text


def replaced(text: str, place: Lines, new: str) -> str:
    """Return the text with the lines of ``place`` replaced by ``new``, reindented; an empty ``new`` deletes them."""
    lines = text.splitlines(keepends=True)
    indent = lines[place.first][: _indent(lines[place.first])]
    ending = "\n" if lines[place.last].endswith("\n") else ""
    whole = new.strip("\n").rstrip()
    is_indented = bool(indent) and whole.startswith(indent) and _indent(whole) == len(indent)
    indented = (whole if is_indented else textwrap.indent(_dedent(new, len(indent)), indent)) + ending
    indented = indented if new.strip() else ""
    return "".join([*lines[: place.first], indented, *lines[place.last + 1 :]])


def _header(lines: list[str], number: int) -> str | None:
    """Return the name of the function whose header begins in this line, None if there is none."""
    if len(lines[number]) > LONGEST_LINE:
        return None
    signature, last = _signature(lines, number)
    for pattern in _HEADERS:
        if header := pattern.match(signature):
            following = lines[last + 1].strip() if last + 1 < len(lines) else ""
            opens = pattern not in _BRACED or signature.endswith("{") or following == "{" or following.startswith(": ")
            first_word = signature.split(maxsplit=1)[0].split("(")[0]
            if opens and not {header["name"], first_word} & _STATEMENTS:
                return ".".join(filter(None, (header.groupdict().get("owner"), header["name"])))
    return None


def _signature(lines: list[str], number: int) -> tuple[str, int]:
    """Return the line, with those after it that continue its parameters, and the number of the last one."""
    text, last = lines[number].rstrip(), number
    if not _UNFINISHED.search(text):
        return text, last
    while text.count("(") > text.count(")"):
        last += 1
        if last == len(lines) or len(text) + len(lines[last]) > LONGEST_SIGNATURE:
            return lines[number].rstrip(), number
        text = f"{text} {lines[last].strip()}"
    return text, last


def _classes(lines: list[str], number: int) -> list[str]:
    """Return the name of the class around a line, if there is one."""
    depth = _indent(lines[number])
    for line in reversed(lines[:number]):
        if not depth:
            break
        if line.strip() and _indent(line) < depth:
            depth = _indent(line)
            if header := _CLASS.match(line):
                return [header[1]]
    return []


def _end(lines: list[str], first: int, quoted: set[int]) -> int:
    signature, last = _signature(lines, first)
    depth, body = _indent(signature), last + 1
    for number in range(body, len(lines)):
        line = lines[number].strip()
        if number in quoted and first not in quoted:
            last = number
        elif line and _indent(lines[number]) <= depth:
            is_braced = _is_braced([signature, *lines[body:number]], depth)
            if line.startswith(")") or line == "where" or (line == "{" and not is_braced):
                continue  # closes a long signature, follows it in Rust, or opens the body
            if (_DIRECTIVE.match(line) or _LABEL.match(line)) and is_braced:
                continue
            return number if re.match(r"[}\]]|end\b", line) else last
        elif line:
            last = number
    return last


def _is_braced(lines: list[str], depth: int) -> bool:
    return any(line.rstrip().endswith("{") for line in lines if _indent(line) <= depth)


def _quoted(lines: list[str]) -> set[int]:
    """Return the lines that begin inside of a string in triple quotes."""
    text = "\n".join(lines)
    found: set[int] = set()
    for match in _STRING.finditer(text):
        if match[1]:
            start = text.count("\n", 0, match.start())
            found.update(range(start + 1, start + 1 + match[0].count("\n")))
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _is_block_at(lines: list[str], block: str, start: int) -> bool:
    return "\n".join(lines[start : start + block.count("\n") + 1]) == block


def _dedent(new: str, indent: int) -> str:
    """Return the text dedented to the margin, even if only its later lines have the file's indentation."""
    new = textwrap.dedent(new.strip("\n")).rstrip()
    first, _, rest = new.partition("\n")
    if not rest or first != first.lstrip() or first.endswith((":", "{", "(", "[", ",")):
        return new
    depth = min((_indent(line) for line in rest.splitlines() if line.strip()), default=0)
    if indent and depth >= indent:
        rest = "\n".join(line[indent:] for line in rest.splitlines())
    return f"{first}\n{rest}"
