"""Checks the rules of the house that no linter checks. Part of `make lint`."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "paths": set(),
    "process": set(),
    "tasks": set(),
    "providers": set(),
    "events": set(),
    "hooks": {"events"},
    "workspace": {"errors", "paths", "process"},
    "skills": set(),
    "front_matter": set(),
    "log": {"errors", "events", "paths", "process"},
    "llm": {"errors", "events", "paths", "providers"},
    "sandbox": {"errors", "events", "paths", "process", "tasks", "workspace"},
    "codeindex": {"errors", "paths", "sandbox", "workspace"},
    "settings": {"errors", "events", "hooks", "paths", "providers", "sandbox"},
    "context": {"errors", "events", "front_matter", "paths", "workspace"},
    "agents": {"errors", "events", "front_matter", "llm", "paths", "skills"},
    "session": {
        "agents",
        "codeindex",
        "context",
        "errors",
        "events",
        "hooks",
        "llm",
        "log",
        "paths",
        "sandbox",
        "settings",
        "skills",
    }
    | {"tasks", "workspace"},
    "evals": {"agents", "errors", "events", "llm", "log", "paths", "sandbox", "session", "workspace"}
    | {"process", "server"},
    "server": {"agents", "errors", "events", "llm", "log", "process", "session", "settings", "workspace"}
    | {"providers", "tasks"},
    "cli": {
        "agents",
        "codeindex",
        "context",
        "errors",
        "evals",
        "events",
        "hooks",
        "llm",
        "log",
        "paths",
        "sandbox",
        "server",
    }
    | {"session", "settings", "tasks", "workspace"},
}
"""What each part of the package may import besides itself."""

CHECKED = ("handiwork", "scripts", "bundle", "perf", "examples")
WITHOUT_TESTS = ("scripts", "perf", "examples")
FILE_LIMIT, FUNCTION_LIMIT, LOOP_LIMIT, FOLDER_LIMIT = 400, 60, 200, 12
LOOP = "handiwork/session/loop.py"
SERVE = "handiwork/cli/commands/serve.py"
VITE = "web/vite.config.ts"
SANDBOX_KINDS = {"none", "bubblewrap", "docker"}
SMALL = 60
"""A module of fewer lines that one other module imports belongs into that one, unless it is a seam."""

ACTIONS, _, RECORDS = EVENTS = tuple(f"handiwork/events/{name}.py" for name in ("action", "observation", "record"))
PRIVATE_WORDS = {
    *("asked", "attended", "borrowing", "called", "collecting", "desk", "drive", "elsewhere", "gauge", "given", "held"),
    *("keeper", "keeping", "kept", "made", "outputs", "past", "placed", "said", "sense", "shown", "stacked", "stepper"),
    *("stuck", "talk", "told", "transient", "visits", "watch"),
}
"""Names that tell a newcomer nothing: participles, adverbs and metaphors that the package once had."""
GLOSSARY = {"browsing", "hardening", "listing", "nested", "onboarding", "pending", "rendering", "served", "verified"}
"""Last words of module names that end like participles and are the field's."""


@dataclass(frozen=True)
class Allowed:
    """The breaches that a tree may still have, each with its count. A count that is too high is a fault too."""

    class_names: Mapping[str, int] = field(default_factory=dict[str, int])
    module_names: Mapping[str, int] = field(default_factory=dict[str, int])
    small_modules: Mapping[str, int] = field(default_factory=dict[str, int])
    unwritten_events: Mapping[str, int] = field(default_factory=dict[str, int])
    unread_events: Mapping[str, int] = field(default_factory=dict[str, int])
    sandbox_kinds: Mapping[str, int] = field(default_factory=dict[str, int])


TODAY = Allowed(
    small_modules={
        "handiwork/evals/scoring/sqlite_rows.py": 1,  # a program of its own: bird.py runs it in another process
    },
)
"""The breaches of this repository. Only lower the counts and remove lines; never add one."""


@dataclass(frozen=True)
class Module:
    """A parsed Python file; ``name`` is its path below the root."""

    name: str
    text: str
    tree: ast.Module

    @property
    def parts(self) -> tuple[str, ...]:
        """The folders of the name, and the name of the module."""
        return Path(self.name).with_suffix("").parts


def modules(root: Path) -> list[Module]:
    """Return all modules that are checked."""
    paths = [path for folder in CHECKED for path in sorted((root / folder).rglob("*.py"))]
    texts = [(str(path.relative_to(root)), path.read_text()) for path in paths]
    return [Module(name, text, ast.parse(text)) for name, text in texts]


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of every absolute import, also of those inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)


def import_faults(module: Module) -> Iterator[str]:
    """Yield the imports that point upwards, and those of tests outside of tests."""
    for line, name in imports(module.tree):
        first, *rest = name.split(".")
        if first == "tests" and module.parts[0] in WITHOUT_TESTS:
            yield f"{module.name}:{line}: {module.parts[0]} may not import {name}"
        if first != "handiwork" or module.parts[0] != "handiwork" or not rest:
            continue
        layer, target = module.parts[1], rest[0]
        if module.parts[1:3] == ("sandbox", "inside"):
            yield f"{module.name}:{line}: the inside server runs alone and may not import {name}"
        elif layer != "__init__" and target not in LAYERS[layer] | {layer, "__version__"}:
            yield f"{module.name}:{line}: {layer} may not import {name}"


def length_faults(module: Module) -> Iterator[str]:
    """Yield the file, and those of its functions, that are too long."""
    lines = module.text.count("\n")
    limit = LOOP_LIMIT if module.name == LOOP else FILE_LIMIT
    if lines > limit:
        yield f"{module.name}: {lines} lines, over {limit}"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LIMIT:
                yield f"{module.name}:{node.lineno}: {node.name} has {length} lines, over {FUNCTION_LIMIT}"


def port_faults(root: Path, package: Iterable[Module]) -> Iterator[str]:
    """Yield the places that write the default port of `handiwork serve` again, or another one for it."""
    defaults = [
        default.value
        for module in package
        if module.name == SERVE
        for function in ast.walk(module.tree)
        if isinstance(function, ast.FunctionDef) and function.name == "serve"
        for argument, default in zip(reversed(function.args.args), reversed(function.args.defaults), strict=False)
        if argument.arg == "port" and isinstance(default, ast.Constant)
    ]
    if len(defaults) != 1:
        yield f"{SERVE}: serve() has no default port: name the file that has it in scripts/check_structure.py"
        return
    written = [
        f"{module.name}:{node.lineno}: the default port {node.value} is written more than once"
        for module in package
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value == defaults[0]
    ]
    yield from written if len(written) > 1 else []
    if not (root / VITE).is_file():
        yield f"{VITE}: missing: name the file that has the web app's server in scripts/check_structure.py"
        return
    for number, line in enumerate((root / VITE).read_text().splitlines(), 1):
        if port := re.search(r"\b[0-9]{4,5}\b", line):
            yield f"{VITE}:{number}: the port {port[0]} is written beside the default in {SERVE}"


def folder_faults(package: Iterable[Module]) -> Iterator[str]:
    """Yield the folders that have more than FOLDER_LIMIT modules."""
    names = (Path(module.name) for module in package if module.parts[-1] != "__init__")
    for folder, size in Counter(str(name.parent) for name in names).items():
        if size > FOLDER_LIMIT:
            yield f"{folder}: {size} modules in one folder, over {FOLDER_LIMIT}"


def private_names(package: Iterable[Module]) -> Counter[str]:
    """Return the modules whose names have a word of PRIVATE_WORDS, or end with a participle outside of the GLOSSARY."""

    def is_private(words: list[str]) -> bool:
        last = words[-1]
        return bool(PRIVATE_WORDS & set(words)) or (last.endswith(("ed", "ing")) and last not in GLOSSARY)

    return Counter(module.name for module in package if is_private(module.parts[-1].split("_")))


def small_modules(package: Sequence[Module]) -> Counter[str]:
    """Return the modules of fewer than SMALL lines that exactly one other module imports."""
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for module in package:
        for name in _imported(module):
            importers[name].add(module.name)
    return Counter(
        module.name
        for module in package
        if module.parts[-1] != "__init__"
        and module.text.count("\n") < SMALL
        and len(importers[".".join(module.parts)] - {module.name}) == 1
    )


def _imported(module: Module) -> Iterator[str]:
    """Yield the dotted names that a module imports, relative imports included, each also without its last part."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            above = module.parts[: len(module.parts) - node.level] if node.level else ()
            origin = ".".join((*above, *([node.module] if node.module else [])))
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def unwritten_events(package: Iterable[Module]) -> Counter[str]:
    """Return the types of events that no module outside of handiwork/events makes, as an object or as JSON."""
    types: set[str] = set()
    written: set[str] = set()
    for module in package:
        if module.name in EVENTS:
            types |= {node.name for node in module.tree.body if isinstance(node, ast.ClassDef)}
        elif module.parts[1] != "events":
            for node in ast.walk(module.tree):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    written.add(node.func.id)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    written.add(node.value)
    return Counter(types - written)


def unread_events(package: Iterable[Module]) -> Counter[str]:
    """Return the actions and records that no module outside of handiwork/events executes or reads.

    Such a module names the type other than by making one. Of observations every reader takes the text.
    """
    types: set[str] = set()
    read: set[str] = set()
    for module in package:
        if module.name in (ACTIONS, RECORDS):
            types |= {node.name for node in module.tree.body if isinstance(node, ast.ClassDef)}
        elif module.parts[1] != "events":
            makers = {id(node.func) for node in ast.walk(module.tree) if isinstance(node, ast.Call)}
            for node in ast.walk(module.tree):
                if isinstance(node, ast.Name) and id(node) not in makers:
                    read.add(node.id)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    read.add(node.value)
    return Counter(types - read)


def shared_class_names(package: Iterable[Module]) -> Counter[str]:
    """Return how many modules define a class, private and nested ones too, for the names that more than one defines."""
    names = Counter(
        name
        for module in package
        for name in {node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}
    )
    return Counter({name: count for name, count in names.items() if count > 1})


def sandbox_branches(package: Iterable[Module]) -> Counter[str]:
    """Return the number of comparisons with the name of a sandbox kind, by module outside of handiwork/sandbox."""
    outside = (module for module in package if module.parts[1] != "sandbox")
    return Counter(module.name for module in outside for node in ast.walk(module.tree) if _names_sandbox_kind(node))


def _names_sandbox_kind(node: ast.AST) -> bool:
    """Tell whether a comparison or `match` names a kind; "none" counts only beside a name that has "sandbox" in it."""
    match node:
        case ast.Compare():
            sides = [node.left, *node.comparators]
        case ast.Match():
            patterns = [pattern for case in node.cases for pattern in ast.walk(case.pattern)]
            sides = [node.subject, *(pattern.value for pattern in patterns if isinstance(pattern, ast.MatchValue))]
        case _:
            return False
    values = [value for side in sides for value in getattr(side, "elts", [side])]
    kinds = {value.value for value in values if isinstance(value, ast.Constant)} & SANDBOX_KINDS
    return bool(kinds - {"none"}) or (bool(kinds) and any("sandbox" in ast.unparse(side).lower() for side in sides))


def ratchet(rule: str, found: Mapping[str, int], allowed: Mapping[str, int]) -> Iterator[str]:
    """Yield the counts that are above the allowed ones, and the allowed ones that can be lowered."""
    for name in sorted({*found, *allowed}):
        count, most = found.get(name, 0), allowed.get(name, 0)
        if count > most:
            yield f"{name}: {rule}: {count}, at most {most} allowed"
        elif count < most:
            yield f"{name}: {rule}: {count or 'none'} left of {most} allowed: lower it in scripts/check_structure.py"


def faults(root: Path, allowed: Allowed) -> list[str]:
    """Return every breach of the tree at ``root``, one line each."""
    checked = modules(root)
    package = [module for module in checked if module.parts[0] == "handiwork"]
    found = [fault for module in checked for fault in (*length_faults(module), *import_faults(module))]
    if not (root / LOOP).is_file():
        found.append(f"{LOOP}: missing: name the file of the loop in scripts/check_structure.py")
    return [
        *found,
        *port_faults(root, package),
        *folder_faults(package),
        *ratchet("modules with a class of this name", shared_class_names(package), allowed.class_names),
        *ratchet("name that is no noun or verb of the field", private_names(package), allowed.module_names),
        *ratchet(f"module under {SMALL} lines that one module imports", small_modules(package), allowed.small_modules),
        *ratchet("event that nothing writes", unwritten_events(package), allowed.unwritten_events),
        *ratchet("event that nothing executes or reads", unread_events(package), allowed.unread_events),
        *ratchet("branches on the kind of sandbox", sandbox_branches(package), allowed.sandbox_kinds),
    ]


def main() -> int:
    """Print every fault; return 1 if there is one."""
    found = faults(Path(__file__).resolve().parent.parent, TODAY)
    print("\n".join(found) if found else "structure: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
