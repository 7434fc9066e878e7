"""The available benchmarks: those of this package, and those from entry points and files."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from handiwork.errors import HandiworkError
from handiwork.evals import benchmarks
from handiwork.evals.benchmark import Benchmark

GROUP = "handiwork.benchmarks"


class BenchmarkNotFoundError(HandiworkError):
    """No benchmark has that name; the message lists the available ones."""


def all_of() -> list[Benchmark]:
    """Return every installed benchmark, sorted by name."""
    modules = pkgutil.walk_packages(benchmarks.__path__, f"{benchmarks.__name__}.")
    builtin = [one for module in modules for one in _benchmarks_of(importlib.import_module(module.name))]
    external = [point.load()() for point in entry_points(group=GROUP)]
    return sorted([*builtin, *external], key=lambda one: one.name)


def find(name: str) -> Benchmark:
    """Return the benchmark of that name, or the one in the Python file of that path. Raises BenchmarkNotFoundError."""
    if name.endswith(".py"):
        return _load_file(Path(name).expanduser().absolute())
    by_name = {one.name: one for one in all_of()}
    if name not in by_name:
        raise BenchmarkNotFoundError(
            f"there is no benchmark {name!r}: there are {', '.join(by_name)}, or name a file.py"
        )
    return by_name[name]


def _load_file(path: Path) -> Benchmark:
    # Not the bare stem: it may be the name of a module that is in use.
    spec = importlib.util.spec_from_file_location(f"benchmark_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise BenchmarkNotFoundError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a module of others may raise anything
        raise BenchmarkNotFoundError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    candidates = _benchmarks_of(module)
    if len(candidates) != 1:
        unfinished = [
            f"; {name} lacks {', '.join(sorted(one.__abstractmethods__))}"
            for name, one in inspect.getmembers(module, inspect.isabstract)
            if one.__module__ == module.__name__
        ]
        problem = f"{path} must define one class of Benchmark, and has {len(candidates)}"
        raise BenchmarkNotFoundError("".join([problem, *unfinished]))
    return candidates[0]


def _benchmarks_of(module: ModuleType) -> list[Benchmark]:
    """Return the benchmarks that a module itself defines."""
    classes = [
        member for _, member in inspect.getmembers(module, inspect.isclass) if member.__module__ == module.__name__
    ]
    return [member() for member in classes if issubclass(member, Benchmark) and not inspect.isabstract(member)]
